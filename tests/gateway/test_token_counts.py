"""The counts of tokens before a request, beside what the template of a served model makes of the prompt."""

from collections.abc import AsyncGenerator
from typing import Any

import jinja2
import pytest
from anthropic import AsyncAnthropic
from anthropic.types import MessageParam
from openai import AsyncOpenAI
from openai.types.responses import EasyInputMessageParam
from tokenizers import Tokenizer

from gateway.settings import GatewaySettings
from tests.dialogues.scripted import TINY
from tests.fakes.streaming_engine import MODEL
from tests.gateway.running import Gateway, running_gateway

SYSTEM = "Be brief."
CHATS = {
    "word": ["Hi."],
    "dialogue": ["Hi.", "Hello, what can I do?", "Name a city in Norway."],
    "long": ["The locker code of the user is 482. " * 200],
}
TOO_MANY, TOO_FEW = 6, 4
"""Some templates begin the reply with an empty thought, of four tokens."""


@pytest.fixture
async def served(settings: GatewaySettings) -> AsyncGenerator[Gateway]:
    """A gateway that knows the tokenizer of the model that ships with the project."""
    named = {"profile": "tiny", "tokenizer": TINY / "tokenizer.json"}
    async with running_gateway(settings.model_copy(update=named)) as gateway:
        yield gateway


def said(texts: list[str]) -> list[tuple[str, str]]:
    return [("assistant" if place % 2 else "user", text) for place, text in enumerate(texts)]


def tokens_of(messages: list[dict[str, str]], **options: Any) -> int:
    """The tokens of the prompt that an engine makes, by template and tokenizer of the checkpoint."""
    template = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
    text = template.from_string((TINY / "chat_template.jinja").read_text()).render(
        messages=messages, add_generation_prompt=True, **options
    )
    encoded: Any = Tokenizer.from_file(str(TINY / "tokenizer.json")).encode(text, add_special_tokens=False)
    return len(encoded.ids)


def check_count(counted: int, messages: list[dict[str, str]]) -> None:
    assert tokens_of(messages, enable_thinking=False) - TOO_FEW <= counted <= tokens_of(messages) + TOO_MANY


@pytest.mark.parametrize("texts", CHATS.values(), ids=CHATS)
async def test_messages_count_what_the_template_makes_of_them(served: Gateway, texts: list[str]) -> None:
    messages: list[MessageParam] = [{"role": role, "content": text} for role, text in said(texts)]  # pyright: ignore
    async with AsyncAnthropic(base_url=served.url, api_key="unused") as sdk:
        counted = await sdk.messages.count_tokens(model=MODEL, system=SYSTEM, messages=messages)
    plain = [{"role": role, "content": text} for role, text in [("system", SYSTEM), *said(texts)]]
    check_count(counted.input_tokens, plain)


@pytest.mark.parametrize("texts", CHATS.values(), ids=CHATS)
async def test_responses_count_what_the_template_makes_of_them(served: Gateway, texts: list[str]) -> None:
    asked: list[EasyInputMessageParam] = [{"role": role, "content": text} for role, text in said(texts)]  # pyright: ignore
    async with AsyncOpenAI(base_url=f"{served.url}/v1", api_key="unused") as sdk:
        counted = await sdk.responses.input_tokens.count(model=MODEL, input=[*asked])
    check_count(counted.input_tokens, [{"role": role, "content": text} for role, text in said(texts)])
