"""What the clients of an API expect of every answer: how an error looks, and which headers hold the request's id."""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from memloop.wire.errors import MemloopError


@dataclass(frozen=True, slots=True)
class ApiStyle:
    """The style of one API. ``error_body`` and ``error_status`` describe an error; ``id_headers`` are in lower case."""

    error_body: Callable[[MemloopError], Mapping[str, object]]
    error_status: Callable[[MemloopError], int]
    id_headers: tuple[str, ...]


OPENAI: Final = ApiStyle(
    lambda error: error.envelope().model_dump(), lambda error: error.http_status, ("x-request-id",)
)

api_style: ContextVar[ApiStyle] = ContextVar("api_style", default=OPENAI)
"""The style of the request that is being answered."""
