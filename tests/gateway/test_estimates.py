"""What a request will cost is estimated in time linear to it, however it is nested."""

import asyncio
from collections.abc import Callable, Sequence

import orjson
import pytest

from gateway.access.estimates import estimate_tokens
from gateway.settings import GatewaySettings
from memloop.chunking import EstimatingSplitter
from tests.gateway.running import CHAT, question, running_gateway
from tests.memloop.growth import is_linear

COUNTING = EstimatingSplitter()


def nested(depth: int, value: object) -> object:
    """The value in that many lists and content fields, in turn."""
    for _ in range(depth // 2):
        value = [{"content": value}]
    return value


def tokens(*asked: object) -> int:
    return asyncio.run(estimate_tokens(asked, COUNTING))


@pytest.mark.parametrize(
    "asked",
    [
        [{"role": "user", "content": "Where is the key?"}],
        [{"role": "user", "content": [{"type": "text", "text": "Where is the key?"}]}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x" * 1000}}]}, "Where is the key?"],
    ],
    ids=["text", "parts", "picture"],
)
def test_texts_are_counted_wherever_a_message_has_them(asked: Sequence[object]) -> None:
    assert tokens(asked) == COUNTING.count("Where is the key?")


def test_token_ids_count_as_one_each() -> None:
    assert tokens([[1, 2, 3], [4] * 20_000]) == 20_003 + COUNTING.count("")


def test_any_depth_is_estimated() -> None:
    assert tokens(nested(100_000, "deep")) == tokens()


def deep(size: int) -> object:
    return nested(size, "deep")


def many_deep(size: int) -> object:
    return [nested(800, "deep")] * (size // 800)


def messages(size: int) -> object:
    return [{"role": "user", "content": "x"}] * size


def empty_lists(size: int) -> object:
    return [()] * size


def token_ids(size: int) -> object:
    return [1] * size


@pytest.mark.parametrize("make", [deep, many_deep, messages, empty_lists, token_ids])
def test_twice_the_request_costs_at_most_2_6_times(make: Callable[[int], object]) -> None:
    assert is_linear(make, tokens, size=40_000)


async def test_a_deep_chat_under_a_token_limit_is_no_failure_of_ours(settings: GatewaySettings) -> None:
    deep = orjson.dumps(question(messages=[])).replace(b"[]", b'[{"role":"user","content":%b}]')
    changed = settings.model_copy(update={"tokens_per_minute": 1000})
    async with running_gateway(changed) as gateway:
        for depth in (200, 1000, 5000, 100_000):
            answer = await gateway.post(CHAT, deep % (b"[" * depth + b"]" * depth))
            assert answer.status < 500, (depth, answer.raw)
