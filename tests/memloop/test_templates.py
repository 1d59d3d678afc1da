"""Chats in the roles that a model's template takes: nothing refused, nothing lost, nothing changed without need."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import MistralRequestValidatorV5

from memloop.templates import ANY_ROLES, ChatTemplate, described, fitted, refuses_roles, stricter
from memloop.wire.chat import Json

STRICTEST = ChatTemplate(system=False, developer=False, tools=False, alternates=True)
MISTRAL = ChatTemplate(developer=False, alternates=True)
TEMPLATES = [
    ChatTemplate(system=system, developer=developer, tools=tools, alternates=alternates)
    for system in (True, False)
    for developer in (True, False)
    for tools in (True, False)
    for alternates in (True, False)
]

ALTERNATING = """
{%- if messages[0].role == 'system' %}{% set first = messages[0].content + '\n' %}{% set messages = messages[1:] %}
{%- else %}{% set first = '' %}{% endif %}
{%- for message in messages %}
{%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate') }}{% endif %}
<{{ message.role }}>{% if loop.first %}{{ first }}{% endif %}{{ message.content }}
{%- endfor %}"""
SILENT = "{% for m in messages if m.role in ('user', 'assistant') %}<{{ m.role }}>{{ m.content }}{% endfor %}"
OPEN = """{{ tools | tojson }}{% for m in messages %}<{{ m.role }}>{{ m.content }}
{%- if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{% endfor %}"""


def rendering(template: str) -> Callable[[list[Json], list[Json] | None], str]:
    """Renders as engines do: in jinja2's sandbox, with ``raise_exception``."""

    def raise_exception(message: str) -> None:
        raise ValueError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    compiled = environment.from_string(template, globals={"raise_exception": raise_exception})
    return lambda messages, tools: compiled.render(messages=messages, tools=tools)


def says(role: str, content: object) -> Json:
    return {"role": role, "content": content}  # type: ignore[dict-item]


def calls(call_id: str, word: str) -> list[Json]:
    call = {"id": call_id, "type": "function", "function": {"name": "look", "arguments": json.dumps({"word": word})}}
    result: Json = {"role": "tool", "tool_call_id": call_id, "content": f"result{word}"}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}, result]  # type: ignore[list-item]


@st.composite
def chats(draw: st.DrawFn) -> list[Json]:
    """Chats as clients send them: any order of roles, a user message somewhere."""
    kinds = draw(st.lists(st.sampled_from(["system", "developer", "user", "assistant", "call"]), max_size=8))
    messages: list[Json] = []
    for number, kind in enumerate([*kinds, "user"]):
        messages += calls(f"call{number:05d}", f"word{number}") if kind == "call" else [says(kind, f"word{number}")]
    return messages


def test_a_chat_stays_as_it_is_for_a_template_that_takes_all() -> None:
    chat = [says("assistant", "a"), says("user", "b"), says("user", "c"), says("developer", "d")]
    assert fitted(chat, ANY_ROLES) == chat


def test_a_chat_in_turns_stays_as_it_is_for_every_template_with_a_system_message() -> None:
    chat = [says("system", "s"), says("user", "a"), says("assistant", "b"), says("user", "c")]
    assert fitted(chat, MISTRAL) == chat


def test_neighbours_of_one_role_become_one_message() -> None:
    chat = [says("user", "a"), says("user", "b"), says("assistant", "c"), says("assistant", "d"), says("user", "e")]
    assert fitted(chat, MISTRAL) == [says("user", "a\n\nb"), says("assistant", "c\n\nd"), says("user", "e")]


def test_a_system_message_that_is_not_taken_begins_the_first_user_message() -> None:
    assert fitted([says("system", "s"), says("user", "a")], STRICTEST) == [says("user", "s\n\na")]


def test_images_stay_beside_merged_text() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    chat = [says("user", "a"), says("user", [image, {"type": "text", "text": "b"}])]
    assert fitted(chat, MISTRAL) == [
        says("user", [{"type": "text", "text": "a"}, image, {"type": "text", "text": "b"}])
    ]


def test_calls_and_results_become_text_where_a_template_has_no_tools() -> None:
    chat = [says("user", "a"), *calls("call00001", "b"), says("user", "c")]
    assert fitted(chat, STRICTEST) == [
        says("user", "a"),
        says("assistant", '<tool_call>\n{"name": "look", "arguments": {"word": "b"}}\n</tool_call>'),
        says("user", "<tool_response>\nresultb\n</tool_response>\n\nc"),
    ]


def test_a_chat_that_begins_with_the_assistant_gets_a_user_before_it() -> None:
    first, *rest = fitted([says("assistant", "Hello."), says("user", "a")], MISTRAL)
    assert first["role"] == "user"
    assert rest == [says("assistant", "Hello."), says("user", "a")]


@given(chats(), st.sampled_from(TEMPLATES))
def test_no_word_is_lost_and_every_role_is_one_that_the_template_takes(
    chat: list[Json], template: ChatTemplate
) -> None:
    sent = fitted(chat, template)
    text = json.dumps(sent)
    words = [str(message["content"]) for message in chat if message["content"]]
    assert all(word in text for word in words)
    roles = [str(message["role"]) for message in sent]
    assert template.system or "system" not in roles
    assert template.developer or "developer" not in roles
    assert template.tools or not any(message.get("tool_calls") or message["role"] == "tool" for message in sent)
    if template.alternates:
        turns = [m["role"] for m in sent if m["role"] in {"user", "assistant"} and not m.get("tool_calls")]
        assert turns == (["user", "assistant"] * len(turns))[: len(turns)]


@given(chats(), st.sampled_from(TEMPLATES))
def test_a_chat_that_fits_stays_as_it_is(chat: list[Json], template: ChatTemplate) -> None:
    sent = fitted(chat, template)
    assert fitted(sent, template) == sent


@given(chats())
def test_mistrals_own_validator_takes_every_chat(chat: list[Json]) -> None:
    request: Any = ChatCompletionRequest.from_openai(fitted(chat, MISTRAL))  # type: ignore[arg-type]
    validator: Any = MistralRequestValidatorV5()
    validator.validate_request(request)


@given(chats())
def test_what_rendering_shows_of_a_template_is_enough_to_fit_every_chat(chat: list[Json]) -> None:
    for source in (ALTERNATING, SILENT):
        render = rendering(source)
        text = render(fitted(chat, described(render)), None)
        assert all(str(message["content"]) in text for message in chat if message["content"])


@pytest.mark.parametrize(
    ("source", "template"),
    [
        (ALTERNATING, ChatTemplate(developer=False, tools=False, alternates=True)),
        (SILENT, ChatTemplate(system=False, developer=False, tools=False, alternates=True)),
        (OPEN, ANY_ROLES),
        ("{{ raise_exception('never') }}", STRICTEST),
    ],
    ids=["alternating", "leaves out what it does not know", "takes all", "always raises"],
)
def test_a_template_is_described_by_rendering_it(source: str, template: ChatTemplate) -> None:
    assert described(rendering(source)) == template


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, "System role not supported"),
        (400, "registry.ollama.ai/library/gemma2:2b does not support tools"),
        (400, "Only user and assistant roles are supported!"),
        (422, "messages.0.role: Input should be 'system', 'user' or 'assistant'"),
        (500, "Jinja Exception: System message must be at the beginning."),
    ],
)
def test_a_refusal_of_roles_is_recognised(status: int, message: str) -> None:
    assert refuses_roles(status=status, message=message)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "This model's maximum context length is 8192 tokens."),
        (401, "Your role may not use this model."),
        (500, "CUDA out of memory"),
        (None, "The roles are gone."),
    ],
)
def test_another_error_is_no_refusal_of_roles(status: int | None, message: str) -> None:
    assert not refuses_roles(status=status, message=message)


@given(chats())
def test_after_refusals_the_last_try_is_a_chat_of_user_and_assistant_in_turns(chat: list[Json]) -> None:
    tries = list(stricter(ANY_ROLES, chat))
    sent = [fitted(chat, template) for template in tries]
    assert chat not in sent
    assert len({json.dumps(each) for each in sent}) == len(sent)
    assert [fitted(chat, STRICTEST)] in ([sent[-1]] if sent else [], [chat])
