"""``Idempotency-Key``: a POST that changes state happens once, however often a client sends it."""

from gateway.idempotency.idempotency import (
    KEY_HEADER,
    Attempt,
    Idempotency,
    refuse_key_of_batch,
    refuse_key_of_stream,
    subject_of_read,
    subject_of_response,
)

__all__ = [
    "KEY_HEADER",
    "Attempt",
    "Idempotency",
    "refuse_key_of_batch",
    "refuse_key_of_stream",
    "subject_of_read",
    "subject_of_response",
]
