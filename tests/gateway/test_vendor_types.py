"""Every type and field that the installed SDKs let a client send is carried by the translation, or named here.

A new version of an SDK that adds a block, an item, a tool or a field fails these tests until it is handled or refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, get_args, get_origin

import anthropic.types
import openai.types.responses
import pytest
import typing_extensions
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types.responses.response_create_params import ResponseCreateParams
from openai.types.responses.response_input_item_param import FunctionCallOutput, ResponseInputItemParam
from pydantic import BaseModel

from gateway.messages import blocks
from gateway.messages.requests import CreateMessage
from gateway.messages.requests import Tool as AnthropicTool
from gateway.responses.calls import Part
from gateway.responses.items import ITEMS, items_of
from gateway.responses.requests import ResponseRequest, read_request
from gateway.responses.tools import Tool, read_tools
from memloop.wire.errors import InvalidRequest
from memloop_service.http import validated
from tests.gateway.messages_api.test_request_translation import chat_of, request

Fields = Mapping[str, frozenset[str]]
"""The fields of types by the value of ``type`` on the wire."""
_CACHED: Final = "prompt_cache_breakpoint"

ITEMS_REFUSED: Final = {
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "configuration_update",
    "image_generation_call",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "web_search_call",
}
TOOLS_REFUSED: Final = {
    "apply_patch",
    "code_interpreter",
    "computer",
    "computer_use_preview",
    "image_generation",
    "mcp",
    "programmatic_tool_calling",
    "shell",
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
}
BLOCKS_REFUSED: Final = {
    "bash_code_execution_tool_result",
    "code_execution_tool_result",
    "container_upload",
    "server_tool_use",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "web_fetch_tool_result",
    "web_search_tool_result",
}
RESULTS_REFUSED: Final = {"browser_state", "tool_reference"}
FIELDS_REFUSED: Final[Mapping[str, set[str]]] = {
    "message": {"phase"},
    "function_call": {"async"},
    "custom_tool_call": {"async"},
    "reasoning": {"encrypted_content"},
    "input_text": {_CACHED},
    "input_image": {_CACHED, "file_id"},
    "input_file": {_CACHED, "file_id", "file_url", "detail"},
    "function": {"async", "output_schema"},
    "custom": {"async"},
}
"""Of the Responses API; every field of Anthropic's blocks and tools is read."""
TO_THE_ENGINE: Final = {"temperature", "top_p", "service_tier"} | {
    f"prompt_cache_{name}" for name in ("key", "options", "retention")
}
"""Fields of a response's request that an engine gets as they are."""
REQUEST_REFUSED: Final = {"access_programs", "context_management", "image", "moderation", "prompt"}
MESSAGE_REFUSED: Final = {"container", "inference_geo", "user_profile_id", "workspace_id"}


def sdk(union: Any) -> Fields:
    """The types of a union of the SDK; members of one ``type`` are put together."""
    found: dict[str, frozenset[str]] = {}
    for member in _typed_dicts(union):
        hints = typing_extensions.get_type_hints(member)
        for kind in _texts(hints["type"]):
            found[kind] = found.get(kind, frozenset()) | hints.keys()
    assert found
    return found


def ours(union: Any) -> Fields:
    """The same of a union of our models."""
    found: dict[str, frozenset[str]] = {}
    for model in _models(union):
        names = frozenset(field.alias or name for name, field in model.model_fields.items())
        for kind in _texts(model.model_fields["type"].annotation):
            found[kind] = found.get(kind, frozenset()) | names
    return found


def of(typed_dict: Any, field: str) -> Any:
    """The hint of a field of the SDK's."""
    return typing_extensions.get_type_hints(typed_dict)[field]


def _typed_dicts(union: Any) -> Iterator[Any]:
    if typing_extensions.is_typeddict(union):
        yield union
    for argument in get_args(union):
        yield from _typed_dicts(argument)


def _models(union: Any) -> Iterator[type[BaseModel]]:
    if isinstance(union, type) and issubclass(union, BaseModel):
        yield union
    for argument in get_args(union):
        yield from _models(argument)


def _texts(hint: Any) -> Sequence[str]:
    found: list[str] = []
    for argument in get_args(hint):
        is_text = get_origin(hint) is Literal and isinstance(argument, str)
        found.extend([argument] if is_text else _texts(argument))
    return found


A = anthropic.types
OUR_BLOCKS: Fields = {**ours(blocks.UserBlock), **ours(blocks.AssistantBlock)}
UNIONS: Mapping[str, tuple[Fields, Fields, set[str]]] = {
    "items": (
        sdk(ResponseInputItemParam),
        {kind: frozenset(model.model_fields) for kind, model in ITEMS.items()},
        ITEMS_REFUSED,
    ),
    "parts": (sdk(openai.types.responses.ResponseInputContentParam), ours(Part), set()),
    "parts of an answer": (sdk(of(openai.types.responses.ResponseOutputMessageParam, "content")), ours(Part), set()),
    "parts of an output": (sdk(of(FunctionCallOutput, "output")), ours(Part), set()),
    "tools": (sdk(openai.types.responses.ToolParam), ours(Tool), TOOLS_REFUSED),
    "blocks": (sdk(A.ContentBlockParam), OUR_BLOCKS, BLOCKS_REFUSED),
    "blocks of a result": (sdk(of(A.ToolResultBlockParam, "content")), ours(blocks.ResultBlock), RESULTS_REFUSED),
    "sources of images": (
        sdk(of(A.ImageBlockParam, "source")),
        ours(blocks.ImageParam.model_fields["source"].annotation),
        set(),
    ),
    "sources of documents": (
        sdk(of(A.DocumentBlockParam, "source")),
        ours(blocks.DocumentParam.model_fields["source"].annotation),
        set(),
    ),
}


@pytest.mark.parametrize(("theirs", "carried", "refused"), UNIONS.values(), ids=UNIONS)
def test_every_type_of_the_sdk_is_carried_or_refused(theirs: Fields, carried: Fields, refused: set[str]) -> None:
    assert theirs.keys() - carried.keys() == refused


@pytest.mark.parametrize(("theirs", "carried", "refused"), UNIONS.values(), ids=UNIONS)
def test_every_field_of_a_carried_type_is_read_or_refused(theirs: Fields, carried: Fields, refused: set[str]) -> None:
    del refused
    unread = {kind: set(theirs[kind] - carried[kind]) for kind in theirs.keys() & carried.keys()}
    assert {kind: names for kind, names in unread.items() if names} == {
        kind: FIELDS_REFUSED[kind] for kind in unread if kind in FIELDS_REFUSED and unread[kind]
    }


@pytest.mark.parametrize("kind", sorted(ITEMS_REFUSED))
def test_an_item_that_is_not_carried_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidRequest, match=kind) as refused:
        items_of([{"type": kind, "id": "x"}])
    assert (refused.value.http_status, refused.value.param) == (400, "input[0].type")


@pytest.mark.parametrize("kind", sorted(TOOLS_REFUSED))
def test_a_tool_that_nobody_here_runs_is_refused_by_name(kind: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_tools([{"type": kind}])
    assert (refused.value.http_status, str(refused.value.param)[:8]) == (400, "tools[0]")


@pytest.mark.parametrize("kind", sorted(BLOCKS_REFUSED))
def test_a_block_that_is_not_carried_is_refused(kind: str) -> None:
    messages: list[Any] = [{"role": role, "content": [{"type": kind, "id": "x"}]} for role in ("user", "assistant")]
    for message in messages:
        with pytest.raises(InvalidRequest) as refused:
            validated(CreateMessage, {"model": "m", "max_tokens": 9, "messages": [message]})
        assert str(refused.value.param).startswith("messages.0")


def test_every_field_of_a_request_is_read_sent_on_or_refused() -> None:
    asked = {name for member in _typed_dicts(ResponseCreateParams) for name in typing_extensions.get_type_hints(member)}
    assert asked - ResponseRequest.model_fields.keys() == TO_THE_ENGINE | REQUEST_REFUSED
    for name in REQUEST_REFUSED:
        with pytest.raises(InvalidRequest) as refused:
            read_request({"model": "m", "input": "Hi.", name: {"id": "x"}})
        assert refused.value.param == name
    kinds = (MessageCreateParamsNonStreaming, MessageCreateParamsStreaming)
    asked = {name for kind in kinds for name in typing_extensions.get_type_hints(kind)}
    assert asked - CreateMessage.model_fields.keys() == MESSAGE_REFUSED
    for name in MESSAGE_REFUSED:
        with pytest.raises(InvalidRequest):
            validated(CreateMessage, {"model": "m", "max_tokens": 9, "messages": [], name: "x"})


def test_every_field_of_a_tool_of_anthropics_client_is_read() -> None:
    assert typing_extensions.get_type_hints(A.ToolParam).keys() <= AnthropicTool.model_fields.keys()


@pytest.mark.parametrize("kind", sorted(sdk(A.ToolUnionParam).keys() - {"custom"}))
def test_a_tool_that_anthropic_defines_is_refused(kind: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chat_of(request(tools=[{"type": kind, "name": "t"}]))
    assert (refused.value.http_status, refused.value.param) == (400, "tools.0")
