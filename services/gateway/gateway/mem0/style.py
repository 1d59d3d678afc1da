"""The form of errors on mem0's paths: ``detail``, which mem0's client displays, beside our own ``error``."""

from typing import Final

from memloop_service.errors import OPENAI, ApiStyle

MEM0: Final = ApiStyle(
    lambda error: {**OPENAI.error_body(error), "detail": error.message}, OPENAI.error_status, OPENAI.id_headers
)
