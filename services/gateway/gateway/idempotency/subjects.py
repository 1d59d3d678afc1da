"""Whose data a kept answer holds, and requests that take no idempotency key."""

from typing import Final

from fastapi import Request

from memloop.wire.errors import InvalidRequest

KEY_HEADER: Final = "idempotency-key"


def refuse_key_of_stream(request: Request) -> None:
    """Raises InvalidRequest when the request has a key: a stream cannot be replayed, and we promise nothing untrue."""
    if KEY_HEADER in request.headers:
        raise InvalidRequest(
            "An Idempotency-Key is not served with stream: true.", param=KEY_HEADER, code="idempotency_key_with_stream"
        )


def refuse_key_of_batch(request: Request) -> None:
    """Raises InvalidRequest when the request has a key: its answer would belong to many users."""
    if KEY_HEADER in request.headers:
        raise InvalidRequest(
            "A batch takes no Idempotency-Key: repeated, it writes nothing twice.",
            param=KEY_HEADER,
            code="idempotency_key_with_batch",
        )


def subject_of_scope(user_id: str, scope: str) -> str:
    """The subject of answers that hold the data of one of a user's scopes."""
    return f"user:{user_id} {scope}"


def subject_of_response(response_id: str) -> str:
    """The subject of an answer that is a stored response."""
    return f"response:{response_id}"


def subject_of_read(read_id: str) -> str:
    """The subject of a long read's answer."""
    return f"read:{read_id}"
