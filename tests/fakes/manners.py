"""Manners of engines: what their templates and servers refuse, and the forms in which their models reply.

A model reads facts ("fact-0017") and reports those that it sees; ``writes`` gives its decision about what to remember,
``says`` any other reply. The forms are those of public bug reports.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from tests.fakes.job_engine import Body, add_memory, cut, listed, tool_call

Messages: TypeAlias = Sequence[Mapping[str, Any]]
FACT: Final = re.compile(r"fact-\d{4}")


def spoken(text: str) -> Body:
    """A reply in words."""
    return {"role": "assistant", "content": text}


def told(facts: Sequence[str]) -> list[str]:
    """Memories of these facts."""
    return [f"{fact} was told by the user." for fact in facts or ["nothing"]]


def in_words(form: Callable[[str], str]) -> Callable[[Sequence[str]], Body]:
    """Writes the decision as JSON, in this form."""
    return lambda facts: spoken(form(listed(*told(facts))))


def always(reply: Body) -> Callable[[object], Body]:
    """Replies so, whatever is asked."""
    return lambda _: dict(reply)


@dataclass(frozen=True)
class Manners:
    """``template`` raises ValueError for messages that it refuses; one with a field of ``refuses`` gets ``status``.

    ``writes`` None: a call of ``add_memory`` where tools are offered, else JSON. ``sees_tools`` is False for a template
    that leaves them out.
    """

    template: Callable[[Messages], None] | None = None
    refuses: Mapping[str, str] | None = None
    status: int = 400
    writes: Callable[[Sequence[str]], Body] | None = None
    says: Callable[[str], Body] = spoken
    sees_tools: bool = True
    shaped: Callable[[Body], Body] = lambda answer: answer

    def refusal(self, body: Body) -> str:
        """Why the request is refused; empty where it is taken."""
        for field, words in (self.refuses or {}).items():
            if field in body:
                return words
        try:
            if self.template is not None:
                self.template(body["messages"])
        except ValueError as error:
            return str(error)
        return ""

    def reply(self, body: Body, seen: str) -> Body:
        """What a model that reads well says of what it sees: all facts, as the prompt wants them."""
        found = sorted(set(FACT.findall(seen)))
        offered = any(each["function"]["name"] == "add_memory" for each in body.get("tools") or ())
        if offered and not self.sees_tools:
            return spoken("What a lovely thing to say!")
        if offered or "You keep the long-term memory" in seen or "as JSON" in seen:
            return (self.writes or (_called if offered else in_words(str)))(found)
        if body.get("tool_choice") == "required" and self.sees_tools:
            return tool_call(body["tools"][0]["function"]["name"], word="dog")
        said = " ".join(found) or "No previous memory"
        return self.says(rf"\boxed{{{said}}}" if "boxed" in seen else said)


def _called(facts: Sequence[str]) -> Body:
    return add_memory(*told(facts))


def in_turns(messages: Messages) -> None:
    """Refuses as Gemma's template does."""
    system = messages[0]["role"] == "system"
    if any((message["role"] == "user") != (place % 2 == 0) for place, message in enumerate(messages[system:])):
        raise ValueError("Conversation roles must alternate user/assistant/user/assistant/...")


def without_system(messages: Messages) -> None:
    """Refuses as the first Gemma's template did."""
    if any(message["role"] == "system" for message in messages):
        raise ValueError("System role not supported")
    in_turns(messages)


def pairs_calls(messages: Messages) -> None:
    """OpenAI's and most servers' words for a result without its call, and for a call without its result."""
    waiting: list[Any] = []
    for message in [*messages, {"role": "user"}]:
        if message["role"] == "tool" and message["tool_call_id"] not in waiting:
            raise ValueError("messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
        if message["role"] != "tool" and waiting:
            raise ValueError("a message with role 'assistant' and tool_calls must be followed by tool messages")
        waiting = [each for each in waiting if each != message.get("tool_call_id")]
        waiting += [call["id"] for call in cast("list[Body]", message.get("tool_calls", []))]


def without_tools(messages: Messages) -> None:
    """Refuses as the first Mistral's template did."""
    if any(message["role"] not in {"system", "user", "assistant"} or message.get("tool_calls") for message in messages):
        raise ValueError("Only user and assistant roles are supported!")
    without_system(messages)


def one_system(messages: Messages) -> None:
    """Refuses as Qwen 3.5's template does."""
    if any(message["role"] in {"system", "developer"} for message in messages[1:]):
        raise ValueError("System message must be at the beginning.")


NO_TOOLS: Final = {"tools": "registry.ollama.ai/library/m does not support tools"}
NO_FORMAT: Final = {"response_format": "This response_format type is unavailable now"}
_ENDLESS: Final = cut("I think that I think that " * 200)
_PROSE: Final = "What a lovely thing to say!"


def _arguments_as_object(facts: Sequence[str]) -> Body:
    message = _called(facts)
    function = message["tool_calls"][0]["function"]
    function["arguments"] = json.loads(function["arguments"])
    return message


def _in_parts(answer: Body) -> Body:
    """The content as Mistral's reasoning models give it."""
    message = answer["choices"][0]["message"]
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    message["content"] = [thought, {"type": "text", "text": message["content"] or ""}]
    return answer


def _filtered(answer: Body) -> Body:
    """As some proxies answer when they dislike the reply."""
    return answer | {"choices": []} if "filtered" in answer["choices"][0]["message"] else answer


def _late(answer: Body) -> Body:
    """As OpenRouter answers when its provider refuses the request late."""
    error = {"message": "Provider returned error", "code": 400}
    return {"error": error} if "filtered" in answer["choices"][0]["message"] else answer


def _without_end(answer: Body) -> Body:
    answer["choices"][0]["finish_reason"] = None
    return answer | {"usage": None}


def _as_text(form: str) -> Callable[[Sequence[str]], Body]:
    """Writes the call as text; ``form`` holds NAME and ARGS."""

    def writes(facts: Sequence[str]) -> Body:
        call = _called(facts)["tool_calls"][0]["function"]
        return spoken(form.replace("NAME", call["name"]).replace("ARGS", call["arguments"]))

    return writes


def _misnamed(facts: Sequence[str]) -> Body:
    return tool_call("save_to_brain", text=" ".join(facts))


def _halved(facts: Sequence[str]) -> Body:
    text = listed(*told(facts))
    return cut(text[: len(text) * 2 // 3])


def _one_each(facts: Sequence[str]) -> Body:
    """A call for each fact, as models call tools in parallel."""
    calls = [_called([fact])["tool_calls"][0] | {"id": f"c{place}"} for place, fact in enumerate(facts or ["nothing"])]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _one_each_as_text(form: str) -> Callable[[Sequence[str]], Body]:
    """A call for each fact, written as text; ``form`` holds NAME and ARGS."""
    write = _as_text(form)
    return lambda facts: spoken("\n".join(write([fact])["content"] for fact in facts or ["nothing"]))


def _one_each_as_python(facts: Sequence[str]) -> Body:
    """A call for each fact, as Llama writes several."""
    calls = (f"add_memory(memory_list=[{{'key': 'note', 'value': {text!r}}}], summary='kept')" for text in told(facts))
    return spoken(f"[{', '.join(calls)}]")


def _argued(form: Callable[[Body], object]) -> Callable[[Sequence[str]], Body]:
    """A call whose arguments are in this form; a text stays as it is."""

    def writes(facts: Sequence[str]) -> Body:
        message = _called(facts)
        function = message["tool_calls"][0]["function"]
        given = form(json.loads(function["arguments"]))
        function["arguments"] = given if isinstance(given, str) else json.dumps(given)
        return message

    return writes


def _entries(form: Callable[[str], object]) -> Callable[[Sequence[str]], Body]:
    """The decision as JSON whose entries are in this form."""
    return lambda facts: spoken(json.dumps({"memory list": [form(fact) for fact in told(facts)], "summary": "kept"}))


def _lines_of(form: Callable[[str], object]) -> Callable[[Sequence[str]], Body]:
    """A JSON value for each fact, each on a line of its own."""
    return lambda facts: spoken("\n".join(json.dumps(form(fact)) for fact in told(facts)))


def _titled(text: str) -> str:
    """The names of all fields in title case."""
    return re.sub(r'"(memory list|key|value|summary)":', lambda name: name[0].title(), text)


def _thinks(facts: object) -> Body:
    """A thought that takes all the tokens of the reply."""
    del facts
    return {"role": "assistant", "content": None, "reasoning_content": "Hm, " * 300, "finish_reason": "length"}


def _old_call(facts: Sequence[str]) -> Body:
    return {"role": "assistant", "content": None, "function_call": _called(facts)["tool_calls"][0]["function"]}


def _without_calls(answer: Body) -> Body:
    """As Ollama and others write a reply without calls."""
    message = answer["choices"][0]["message"]
    message.setdefault("tool_calls", None)
    return answer


def _fenced(text: str) -> str:
    return f"Based on the talk {{about a dog}}, here it is:\n```json\n{text[:-1]},}}\n```\nAnything else?"


def _curly(text: str) -> str:
    return re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text)


MANNERS: Final[Mapping[str, Manners]] = {
    "alternating template": Manners(in_turns),
    "no system role": Manners(without_system),
    "system at the beginning": Manners(one_system),
    "template without tools": Manners(without_tools, sees_tools=False),
    "tools refused": Manners(refuses=NO_TOOLS),
    "response_format refused": Manners(refuses=NO_FORMAT, sees_tools=False),
    "tools and response_format refused": Manners(refuses={**NO_TOOLS, **NO_FORMAT}),
    "prose": Manners(writes=always(spoken(_PROSE))),
    "prose with braces": Manners(writes=always(spoken("Based on the talk {about a dog}, here it is: {nothing}"))),
    "JSON in prose, fenced": Manners(writes=in_words(_fenced)),
    "trailing comma": Manners(writes=in_words(lambda text: f"{text[:-1]},}}")),
    "smart quotes": Manners(writes=in_words(_curly)),
    "single quotes": Manners(writes=in_words(lambda text: repr(json.loads(text)))),
    "a thought in front": Manners(writes=in_words(lambda text: f"<think>The user {{likes}} it.</think>{text}")),
    "a list, no object": Manners(writes=in_words(lambda text: json.dumps(json.loads(text)["memory list"]))),
    "cut in the middle": Manners(writes=_halved),
    "empty reply": Manners(writes=always(spoken(""))),
    "empty replies, all": Manners(writes=always(spoken("")), says=always(spoken(""))),
    "no content": Manners(writes=always({"role": "assistant", "content": None})),
    "endless reply": Manners(writes=always(_ENDLESS)),
    "endless replies, all": Manners(writes=always(_ENDLESS), says=lambda said: cut(f"{said} " + "and so on " * 400)),
    "only a thought": Manners(writes=always(spoken("<think>The user likes it.</think>"))),
    "tool call as text": Manners(writes=_as_text('<tool_call>{"name": "NAME", "arguments": ARGS}</tool_call>')),
    "tool call as JSON": Manners(writes=_as_text('{"name": "NAME", "parameters": ARGS}')),
    "tool call as Python": Manners(writes=_as_text("[NAME(**ARGS)]")),
    "arguments as an object": Manners(writes=_arguments_as_object),
    "content in parts": Manners(refuses=NO_TOOLS, shaped=_in_parts),
    "no finish_reason, no usage": Manners(shaped=_without_end),
    "no choices for a writer": Manners(writes=always({"role": "assistant", "filtered": True}), shaped=_filtered),
    "an error with status 200": Manners(writes=always({"role": "assistant", "filtered": True}), shaped=_late),
    "half a tool call": Manners(writes=always(cut('<tool_call>{"name": "add_memory", "arguments": {"memory_list": ['))),
    "waits for more": Manners(writes=always(tool_call("buffer_memory", reason="half a thought"))),
    "a call for each fact": Manners(writes=_one_each),
    "a call for each fact, as text": Manners(
        writes=_one_each_as_text('<tool_call>{"name": "NAME", "arguments": ARGS}')
    ),
    "a call for each fact, behind its name": Manners(writes=_one_each_as_text("<function=NAME>ARGS</function>")),
    "a call for each fact, as Python": Manners(writes=_one_each_as_python),
    "an object for each fact": Manners(writes=_lines_of(lambda fact: {"value": fact})),
    "a list for each fact": Manners(writes=_lines_of(lambda fact: json.loads(listed(fact)))),
    "each fact twice": Manners(writes=in_words(lambda text: f"{text}\n{text}")),
    "entries by names of their own": Manners(writes=_entries(lambda fact: {f"note {fact[:9]}": fact})),
    "entries of lists and numbers": Manners(writes=_entries(lambda fact: {"key": fact[:9], "value": [fact, 7]})),
    "names in another case": Manners(writes=in_words(_titled)),
    "the list as a text": Manners(
        writes=_argued(lambda given: given | {"memory_list": json.dumps(given["memory_list"])})
    ),
    "arguments as a text in a text": Manners(writes=_argued(lambda given: json.dumps(json.dumps(given)))),
    "arguments in a code block": Manners(writes=_argued(lambda given: f"```json\n{json.dumps(given)}\n```")),
    "the old field of calls": Manners(writes=_old_call),
    "no calls, null": Manners(refuses=NO_TOOLS, shaped=_without_calls),
    "a reply in another language": Manners(writes=always(spoken("\u041a\u0430\u043a \u043c\u0438\u043b\u043e!"))),
    "thinks without end": Manners(writes=_thinks),
    "thinks without end, all": Manners(writes=_thinks, says=_thinks),
    "roles refused with 500": Manners(in_turns, status=500),
    "tools refused by vLLM": Manners(
        refuses={"tools": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}
    ),
    "tools refused by OpenRouter": Manners(
        refuses={"tools": 'No endpoints found that support tool use. Try disabling "search_memory".'}, status=404
    ),
    "tools refused by llama.cpp": Manners(refuses={"tools": "tools param requires --jinja flag"}, status=500),
    "wrong tool name": Manners(writes=_misnamed),
    "call without arguments": Manners(writes=always(tool_call("add_memory", summary="kept"))),
}
