"""Checks the store's bearer key."""

import secrets
from collections.abc import Awaitable, Callable

from fastapi import Request

from memloop.wire.errors import Unauthenticated


def requires(key: str | None) -> Callable[[Request], Awaitable[None]]:
    """Returns a dependency that compares the bearer key in constant time. Without a key every request passes."""

    async def check(request: Request) -> None:
        if key is None:
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        fits = secrets.compare_digest(given.strip().encode(), key.encode())
        if scheme.lower() != "bearer" or not fits:
            raise Unauthenticated("the store's key is missing or wrong")

    return check
