"""Calls the inference launcher for the served model, its prompt profile and its tokenizer."""

import ssl
from collections.abc import Mapping

from pydantic import Field

from memloop.profiles import Profile, profile_from_files
from memloop.templates import ChatTemplate
from memloop.wire.base import OpenWire
from memloop.wire.checkpoint import CheckpointRecord
from memloop.wire.errors import DependencyError, MemloopError, Unavailable
from memloop_clients.http import Http, retry_after
from memloop_clients.transport import Timeouts

_TIMEOUTS = Timeouts(connect_s=2.0, read_s=30.0, total_s=60.0)


class ServedModel(OpenWire):
    """``GET /v1/model``: the served model; ``engine_url`` ends in ``/v1``.

    ``checkpoint`` is the record of the served checkpoint, if it has one; ``template`` the roles that the model's chat
    template takes, if they were found by rendering it.
    """

    id: str
    engine_url: str
    max_model_len: int = Field(gt=0)
    checkpoint: CheckpointRecord | None = None
    template: ChatTemplate | None = None


class ServedProfile(OpenWire):
    """``GET /v1/profile``: the profile's reference and its files by name."""

    ref: str
    files: dict[str, str]


class InferenceClient(Http):
    """Calls the launcher. Every method raises a DependencyError when it cannot answer."""

    def __init__(self, base_url: str, *, timeouts: Timeouts = _TIMEOUTS, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(base_url, peer="inference launcher", error_of=_error, headers={}, timeouts=timeouts, tls=tls)

    async def profile(self) -> Profile:
        """Return the served model's prompt profile. Raises ProfileError when its files are not a profile."""
        return profile_from_files((await self._answer(ServedProfile, "GET", "v1/profile")).files)

    async def tokenizer(self) -> bytes:
        """Return the served model's ``tokenizer.json``."""
        return await self.json("GET", "v1/tokenizer")

    async def model(self) -> ServedModel:
        """Return the served model and its engine's URL."""
        return await self._answer(ServedModel, "GET", "v1/model")

    async def check(self) -> None:
        """Raise unless the engine behind the launcher is ready: a readiness check."""
        await self.json("GET", "readyz")


def _error(status: int, raw: bytes, headers: Mapping[str, str]) -> MemloopError:
    message = f"the inference launcher answered {status}: {raw.decode('utf-8', 'replace')[:500]}"
    return Unavailable(message, retry_after_s=retry_after(headers)) if status == 503 else DependencyError(message)
