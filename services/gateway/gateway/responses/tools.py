"""The tools of a response, and the functions that an engine gets for them.

A chat-completions engine accepts only functions. A tool whose input is a text, the tools of a namespace, the
client's shell and a search that the client makes become functions; a call of one becomes the item of the tool again.
``file_search`` is made by the gateway (``responses.file_search``). Other tools of the API's own servers are refused,
because Memloop does not run them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from gateway.responses.calls import LOCAL_SHELL, TOOL_SEARCH, ToolSearchOutput, flat_name
from gateway.responses.items import Item, by_type, checked
from gateway.vector_stores import FileSearch
from memloop.wire.base import A_BOOLEAN, Given
from memloop.wire.chat import Json
from memloop.wire.errors import InvalidRequest
from memloop_service.http import object_in

Deferred: TypeAlias = Annotated[Literal[False], A_BOOLEAN] | None
Callers: TypeAlias = tuple[Literal["direct"], ...] | None
Kind: TypeAlias = Literal["function", "custom", "local_shell", "tool_search"]
_WEB_SEARCH: Final = ("web_search", "web_search_preview")


class Function(Given):
    """A tool that the client runs."""

    type: Literal["function"]
    name: str = Field(min_length=1, max_length=256)
    description: str | None = None
    parameters: Json | None = None
    strict: Annotated[bool, Field(strict=True)] | None = None
    defer_loading: Deferred = None
    allowed_callers: Callers = None


class AnyText(Given):
    """A text of any form."""

    type: Literal["text"]


class Grammar(Given):
    """The grammar of a text. The model is shown it; nothing enforces it."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: str


class Custom(Given):
    """A tool of the client whose input is a text."""

    type: Literal["custom"]
    name: str = Field(min_length=1, max_length=256)
    description: str | None = None
    format: Annotated[AnyText | Grammar, Field(discriminator="type")] | None = None
    defer_loading: Deferred = None
    allowed_callers: Callers = None


class Toolset(Given):
    """Tools of the client under a common name."""

    type: Literal["namespace"]
    name: str = Field(min_length=1, max_length=256)
    description: str | None = None
    tools: tuple[Annotated[Function | Custom, Field(discriminator="type")], ...]


class LocalShell(Given):
    """The client's shell."""

    type: Literal["local_shell"]


class ToolSearch(Given):
    """A search for further tools, which the client makes."""

    type: Literal["tool_search"]
    execution: Literal["client"]
    description: str | None = None
    parameters: Json | None = None


Tool: TypeAlias = Function | Custom | Toolset | LocalShell | ToolSearch | FileSearch
_TOOLS: Final[Mapping[str, type[Tool]]] = by_type(Function, Custom, Toolset, LocalShell, ToolSearch, FileSearch)
_OF_FUNCTIONS: Final = {"type", "name", "description", "parameters", "strict"}
"""The fields of a function that a response repeats, null ones too."""
_TEXT_INPUT: Final[Json] = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input of the tool, as it is."}},
    "required": ["input"],
    "additionalProperties": False,
}
_SHELL: Final[Json] = {
    "name": LOCAL_SHELL,
    "description": "Runs a command on the user's machine and returns what it printed.",
    "parameters": {
        "type": "object",
        "properties": {
            "command": {"type": "array", "items": {"type": "string"}, "description": "The program and its arguments."},
            "timeout_ms": {"type": "integer"},
            "working_directory": {"type": "string"},
        },
        "required": ["command"],
    },
}


@dataclass(frozen=True, slots=True)
class Offered:
    """A function that an engine gets, and the tool of the client that it stands for."""

    kind: Kind
    name: str
    namespace: str | None
    function: Json

    @property
    def flat(self) -> str:
        """The function's name."""
        return flat_name(self.name, self.namespace)


def read_tools(given: Iterable[JsonValue]) -> tuple[Tool, ...]:
    """Return the tools of a request. Raises InvalidRequest for one that is not the client's, Unprocessable.

    A web search without access to the web (``external_web_access: false``) searches an index that exists at OpenAI
    alone. Without the index it finds nothing, so it is left out.
    """
    tools = tuple(
        _tool(tool, f"tools[{place}]")
        for place, tool in enumerate(given)
        if (fields := object_in(tool)).get("type") not in _WEB_SEARCH or fields.get("external_web_access") is not False
    )
    if sum(isinstance(tool, FileSearch) for tool in tools) > 1:
        raise InvalidRequest("tools: file_search may be given once.", param="tools", code="unsupported_value")
    return tools


def offered_tools(tools: Iterable[Tool], items: Iterable[Item]) -> dict[str, Offered]:
    """Return the functions of the request's tools, and of those that a search has found, by their names.

    Raises InvalidRequest when two different tools would have the same name.
    """
    found: dict[str, Offered] = {}
    searched = (  # what searches have found was deferred, and is not from here on
        _tool(_loaded(tool), f"input[{place}].tools")
        for place, item in enumerate(items)
        if isinstance(item, ToolSearchOutput)
        for tool in item.tools
    )
    for one in _offered(chain(tools, searched)):
        known = found.setdefault(one.flat, one)
        if (known.kind, known.name, known.namespace) != (one.kind, one.name, one.namespace):
            message = f"tools: two tools would be called {one.flat!r}."
            raise InvalidRequest(message, param="tools", code="unsupported_value")
    return found


def shown_tools(tools: Sequence[Tool]) -> list[Json]:
    """Return the tools as a response repeats them."""
    return [
        tool.model_dump(mode="json", include=_OF_FUNCTIONS)
        if isinstance(tool, Function)
        else tool.model_dump(mode="json", exclude_none=True)
        for tool in tools
    ]


def _tool(tool: JsonValue, place: str) -> Tool:
    kind = tool.get("type") if isinstance(tool, dict) else None
    model = _TOOLS.get(kind) if isinstance(kind, str) else None
    if not isinstance(tool, dict) or model is None:
        message = f"{place}: tools of type {kind!r} are not supported. Only file_search, and tools that you run, are."
        raise InvalidRequest(message, param=f"{place}.type", code="unsupported_value")
    return checked(model, tool, place)


def _loaded(tool: Json) -> Json:
    inner = tool.get("tools")
    loaded: Json = {name: value for name, value in tool.items() if name != "defer_loading"}
    if isinstance(inner, list):
        loaded["tools"] = [_loaded(one) if isinstance(one, dict) else one for one in inner]
    return loaded


def _offered(tools: Iterable[Tool]) -> Iterator[Offered]:
    for tool in tools:
        match tool:
            case Function() | Custom():
                yield _client_tool(tool, None)
            case Toolset():
                yield from (_client_tool(inner, tool.name) for inner in tool.tools)
            case LocalShell():
                yield Offered("local_shell", LOCAL_SHELL, None, _SHELL)
            case ToolSearch():
                yield Offered("tool_search", TOOL_SEARCH, None, _function(tool, TOOL_SEARCH, tool.parameters, None))
            case FileSearch():
                pass  # made before the engine is asked


def _client_tool(tool: Function | Custom, namespace: str | None) -> Offered:
    name = flat_name(tool.name, namespace)
    if isinstance(tool, Function):
        return Offered("function", tool.name, namespace, _function(tool, name, tool.parameters, tool.strict))
    return Offered("custom", tool.name, namespace, _function(tool, name, _TEXT_INPUT, None))


def _function(tool: Function | Custom | ToolSearch, name: str, parameters: Json | None, strict: bool | None) -> Json:
    description, form = tool.description, tool.format if isinstance(tool, Custom) else None
    if isinstance(form, Grammar):
        rule = f"The input follows this {form.syntax} grammar:\n\n{form.definition}"
        description = "\n\n".join(filter(None, (description, rule)))
    given: Json = {"description": description, "parameters": parameters, "strict": strict}
    return {"name": name, **{field: value for field, value in given.items() if value is not None}}


class FunctionChoice(Given):
    """A choice of one tool by its name."""

    type: Literal["function", "custom"]
    name: str


class FileSearchChoice(Given):
    """A choice of the search, which is made in any case."""

    type: Literal["file_search"]


class AllowedTools(Given):
    """A choice among some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: tuple[FunctionChoice, ...] = Field(min_length=1)


ToolChoice: TypeAlias = Literal["none", "auto", "required"] | FunctionChoice | FileSearchChoice | AllowedTools


def chosen(choice: JsonValue, tools: Mapping[str, Offered]) -> tuple[Sequence[Offered], JsonValue]:
    """Return the tools that the model may call, and the choice among them. Raises InvalidRequest."""
    every = tuple(tools.values())
    if choice is None or choice in ("none", "auto", "required"):
        return every, choice
    match (fields := object_in(choice)).get("type"):
        case "function" | "custom":
            name = checked(FunctionChoice, fields, "tool_choice").name
            _known([name], tools)
            return every, {"type": "function", "function": {"name": name}}
        case "file_search":
            checked(FileSearchChoice, fields, "tool_choice")
            return every, None
        case "allowed_tools":
            allowed = checked(AllowedTools, fields, "tool_choice")
            names = [tool.name for tool in allowed.tools]
            _known(names, tools)
            return [tool for tool in every if tool.flat in names], allowed.mode
        case _:
            raise InvalidRequest("This tool_choice is not supported.", param="tool_choice", code="unsupported_value")


def _known(names: Sequence[str], tools: Mapping[str, Offered]) -> None:
    if not tools.keys() >= set(names):
        message = "tool_choice names a tool that is not in tools."
        raise InvalidRequest(message, param="tool_choice", code="unknown_tool")
