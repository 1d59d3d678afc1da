"""The form of errors on mem0's paths: ``detail``, which mem0's client displays, beside our own ``error``."""

from collections.abc import Mapping
from typing import Final

from memloop.wire.errors import MemloopError
from memloop_service.api_style import OPENAI, ApiStyle


def _with_detail(error: MemloopError) -> Mapping[str, object]:
    return {**OPENAI.error_body(error), "detail": error.message}


MEM0: Final = ApiStyle(_with_detail, OPENAI.error_status, OPENAI.id_headers)
