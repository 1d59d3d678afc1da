"""Commands are packed in C as redis-py itself packs them."""

from typing import Any

import pytest
from redis import exceptions
from redis.asyncio.connection import Connection

from memloop_service.redis_connections import OurConnection

_LONG = "x" * 20_000


@pytest.mark.parametrize(
    "command",
    [
        ("GET", "key"),
        ("CONFIG GET", "maxmemory"),
        (b"CONFIG GET", "maxmemory"),
        ("SET", "ключ", "ありがとう", "PX", 5000),
        ("SET", "key", b"\x00\xff"),
        ("ZADD", "key", 1.5, "one", -3, "two"),
        ("SET", "key", ""),
        ("SET", "key", _LONG, "PX", 1),
        ("EVALSHA", "0" * 40, 2, "{a}:1", "{a}:2", '{"token": "7"}'),
    ],
    ids=["text", "two-words", "two-words-as-bytes", "unicode", "bytes", "numbers", "empty", "long", "script"],
)
def test_a_command_has_the_bytes_that_redis_py_gives_it(command: tuple[Any, ...]) -> None:
    ours, theirs = OurConnection(), Connection()

    assert b"".join(ours.pack_command(*command)) == b"".join(theirs.pack_command(*command))


@pytest.mark.parametrize("value", [None, ["list"], {"an": "object"}], ids=["none", "list", "object"])
def test_a_value_that_redis_has_no_form_for_is_refused(value: object) -> None:
    with pytest.raises(exceptions.DataError):
        OurConnection().pack_command("SET", "key", value)


def test_a_lone_surrogate_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UnicodeEncodeError):
        OurConnection().pack_command("SET", "key", "\ud800")
