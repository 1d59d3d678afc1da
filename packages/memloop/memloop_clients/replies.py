"""Reads an engine's chat completion, whole or streamed, and gives it OpenAI's form: the one reader for every route.

Engines differ in the shapes of their replies; docs/engine-replies.md lists them, and the results. A reply
in OpenAI's form stays as it is, the object itself.
"""

import time
from collections.abc import Collection, Mapping
from secrets import token_hex
from typing import Final

import orjson
from pydantic import JsonValue

from memloop.wire.base import object_in, objects_in
from memloop.wire.chat import EARLIER_THINKING, Json, thinking_in
from memloop.wire.errors import EngineError, UnreadableAnswer
from memloop_clients.refusals import Fault
from memloop_clients.tool_calls import Call, ToolCalls

_REASONS: Final = {
    "complete": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "stop_sequence": "stop",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
}
"""Finish reasons of other APIs that engines pass on, in lower case, by OpenAI's."""
_OPENAIS: Final = frozenset({"stop", "length", "tool_calls", "content_filter", "function_call"})
_PLAIN: Final = ("stop", "length", "content_filter")
_NO_REASONS: Final = frozenset({"", "null", "none"})
_CALLING: Final = frozenset({"tool_calls", "function_call"})
_BROKEN_OFF: Final = frozenset({"abort", "error"})
"""Finish reasons of a reply that is not the model's: half a memory would overwrite a whole one."""
_THOUGHTS: Final = frozenset({"thinking", "reasoning"})

HEAD: Final[Mapping[str, type]] = {"id": str, "object": str, "created": int, "model": str}
"""The fields that begin every completion and chunk, and their types."""


class Reply:
    """One choice as it comes. ``offered`` are the names of the tools that the request has."""

    def __init__(self, offered: Collection[str] = ()) -> None:
        self.finish_reason: str | None = None
        self._calls = ToolCalls(offered)
        self._front: Call | None = None
        """The call that is given out, until its arguments are whole."""
        self._waiting: list[tuple[Call | None, Json]] = []
        self._says = False
        self._legacy = False

    @property
    def has_calls(self) -> bool:
        return len(self._calls) > 0 or self._legacy

    @property
    def is_open(self) -> bool:
        """Whether a text may have to wait for a call."""
        return len(self._calls) > 0

    def take(self, choice: Json) -> list[Json]:
        """Take a choice of a chunk; return the same in OpenAI's form: as one, several, or as none while it waits.

        The pieces of a call come together, texts before or after it. Raises EngineError.
        """
        given = choice.get("delta")
        delta = object_in(given) or ({} if self._says else object_in(choice.get("message")))
        said = _said(delta)
        self._says = self._says or bool(delta)
        self._legacy = self._legacy or bool(delta.get("function_call"))
        calls = delta.get("tool_calls")
        pieces = self._calls.take(objects_in([calls] if isinstance(calls, dict) else calls))
        reason = reason_of(choice.get("finish_reason"))
        if reason is not None:
            pieces += self._calls.end()
            reason = "stop" if reason in _CALLING and not self.has_calls else reason
            self.finish_reason = reason
        speaks = bool(said.get("content") or said.get("refusal") or thinking_in(said))
        texts = [(None, said)] if speaks else []
        parts = self._ordered([*texts, *((each.call, each.piece) for each in pieces)], last=reason is not None)
        deltas: list[Json] = _merged(parts)
        if not speaks and (said or reason is not None or not delta):
            deltas = [said | deltas[0], *deltas[1:]] if deltas else [said]
        elif reason is not None and not deltas:
            deltas = [{}]
        rest = {name: value for name, value in choice.items() if name not in {"delta", "message", "finish_reason"}}
        rest["index"] = index_of(choice)
        shown: list[Json] = [{**rest, "delta": delta, "finish_reason": None} for delta in deltas]
        if reason is not None:
            shown[-1]["finish_reason"] = reason
        return [choice] if shown == [{"finish_reason": None, **choice}] else shown

    def end(self) -> list[Json]:
        """Return the missing end of a reply whose engine ended it without a finish reason. Raises EngineError."""
        if self.finish_reason is not None:
            return []
        return self.take({"index": 0, "delta": {}, "finish_reason": "tool_calls" if self.has_calls else "stop"})

    def _ordered(self, parts: list[tuple[Call | None, Json]], *, last: bool) -> list[tuple[Call | None, Json]]:
        """Return the parts whose turn it is: those of one call until it is whole."""
        found: list[tuple[Call | None, Json]] = []
        for call, part in parts:
            if call is not None and call is self._front:
                found.append((call, part))
            elif not self._waiting and self._may_leave(last=last):
                self._leave(call)
                found.append((call, part))
            else:
                self._waiting.append((call, part))
        while self._waiting and self._may_leave(last=last):
            self._leave(self._waiting[0][0])
            if self._front is None:
                found.append(self._waiting.pop(0))
            else:
                found += [each for each in self._waiting if each[0] is self._front]
                self._waiting = [each for each in self._waiting if each[0] is not self._front]
        return found

    def _may_leave(self, *, last: bool) -> bool:
        return last or self._front is None or self._front.is_whole()

    def _leave(self, call: Call | None) -> None:
        if self._front is not None and self._front is not call:
            self._front.closed = True
        self._front = call


def whole_reply(answer: Json, offered: Collection[str] = (), *, model: str = "") -> Json:
    """Return an engine's whole answer in OpenAI's form. Raises EngineError, for an object without choices too.

    ``model`` is the name of the model where the engine does not give it.
    """
    if (fault := fault_in(answer)) is not None:
        raise fault
    choices = objects_in(answer.get("choices"))
    if not choices:
        raise UnreadableAnswer("the engine's answer is not a chat completion")
    plain = all(map(_is_plain, choices))
    shown = choices if plain else [_whole_choice(choice, place, offered) for place, choice in enumerate(choices)]
    if shown == choices and has_head(answer):
        return answer
    return {**answer, **head_of(answer, "chat.completion", model), "choices": list[JsonValue](shown)}


def head_of(given: Json, kind: str, model: str) -> Json:
    """Return the fields that begin every completion and chunk: the engine's where they have OpenAI's types."""
    if has_head(given):
        return {name: given[name] for name in HEAD}
    made: Json = {"id": f"chatcmpl-{token_hex(12)}", "object": kind, "created": int(time.time()), "model": model}
    return {name: given[name] if type(given.get(name)) is HEAD[name] else value for name, value in made.items()}


def has_head(given: Json) -> bool:
    """Return whether a completion or chunk begins as OpenAI's do."""
    return all(type(given.get(name)) is kind for name, kind in HEAD.items())


def _is_plain(choice: Json) -> bool:
    """Return whether a whole choice is a text or calls in OpenAI's form, as most are."""
    message = choice.get("message")
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return False
    calls, content = message.get("tool_calls"), message.get("content")
    return (
        not any(map(message.get, ("function_call", "refusal")))
        and (isinstance(content, str) or (content is None and bool(calls)))
        and choice.get("finish_reason") in (("tool_calls", *_PLAIN) if calls else _PLAIN)
        and (not calls or (isinstance(calls, list) and _are_plain(calls)))
        and (isinstance(choice.get("index"), int) and "delta" not in choice)
    )


def _are_plain(calls: list[JsonValue]) -> bool:
    """Return whether each call has an id of its own, a name and arguments, and nothing else."""
    ids = set[str]()
    for call in map(object_in, calls):
        function = object_in(call.get("function"))
        texts = [text for text in (call.get("id"), *function.values()) if isinstance(text, str) and text.strip()]
        if len(texts) == 3 and call == {"id": texts[0], "type": "function", "function": function}:
            ids |= {texts[0]} if function.keys() == {"name", "arguments"} else set()
    return len(ids) == len(calls)


def _whole_choice(choice: Json, place: int, offered: Collection[str]) -> Json:
    reply, message = Reply(offered), object_in(choice.get("message")) or object_in(choice.get("delta"))
    if not message and "finish_reason" not in choice:
        return choice
    parts = reply.take({"delta": message, "finish_reason": choice.get("finish_reason")}) + reply.end()
    said: Json = {}
    calls: list[Json] = []
    for part in parts:
        delta = object_in(part["delta"])
        said |= {name: value for name, value in delta.items() if name != "tool_calls"}
        for piece in objects_in(delta.get("tool_calls")):
            if "id" in piece:
                calls.append({name: value for name, value in piece.items() if name != "index"})
            else:  # the end of a call without arguments
                blank = calls[int(str(piece["index"]))]
                blank["function"] = object_in(blank["function"]) | {"arguments": "{}"}
    rest = {name: value for name, value in choice.items() if name not in {"delta", "message"}}
    given = [
        {name: value for name, value in call.items() if name != "index"}
        for call in objects_in(message.get("tool_calls"))
    ]
    shown: Json = {**message, **said, "role": "assistant"}
    if given != calls:
        shown["tool_calls"] = list[JsonValue](calls)
    index = index_of(choice) if "index" in choice else place
    ended: Json = {"index": index, "message": shown, "finish_reason": reply.finish_reason}
    return rest | ended


def offered_in(request: Json) -> list[str]:
    """Return the names of the tools that a request has."""
    functions = (object_in(tool.get("function")) for tool in objects_in(request.get("tools")))
    return [name for function in functions if isinstance(name := function.get("name"), str)]


def reason_of(value: JsonValue) -> str | None:
    """Return a finish reason in OpenAI's words, None for no reason. Raises EngineError for a reply that broke off."""
    if not isinstance(value, str) or value.lower() in _NO_REASONS:
        return None
    if value.lower() in _BROKEN_OFF:
        raise EngineError(f"the engine ended its reply early ({value})")
    return value.lower() if value.lower() in _OPENAIS else _REASONS.get(value.lower(), value)


def index_of(choice: Json) -> int:
    """Return the number of a choice: 0 where an engine gives none."""
    index = choice.get("index")
    if isinstance(index, str) and index.isdecimal():
        return int(index)
    return index if isinstance(index, int) else 0


def fault_in(answer: Json, *, kind: str = "") -> EngineError | None:
    """Return the failure that an engine reports with status 200 or in a stream, None for an answer.

    ``kind`` is the event's type.
    """
    error = answer.get("error")
    reports = bool(error) or answer.get("object") == "error" or kind == "error"
    if not reports and ("choices" in answer or not (answer.get("detail") or isinstance(answer.get("message"), str))):
        return None
    words = Fault.of(orjson.dumps(answer))
    code = object_in(error).get("code", answer.get("code"))
    status = code if isinstance(code, int) and 400 <= code < 600 else 502
    message = words.message if answer else "the engine failed"
    return EngineError(message, engine_status=status, param=words.param, code=None if code is None else str(code))


def _said(delta: Json) -> Json:
    """Return a delta without its calls, in OpenAI's form."""
    found = {name: value for name, value in delta.items() if name != "tool_calls"}
    content = delta.get("content")
    if content is not None and not isinstance(content, str):
        texts, thoughts = _parted(content)
        found["content"] = texts
        if thoughts and not thinking_in(delta):
            found[EARLIER_THINKING] = thoughts
    if not isinstance(delta.get("refusal", ""), str | None):
        found["refusal"] = None
    return found


def _parted(content: JsonValue) -> tuple[str, str]:
    """Return the texts and the thoughts of a content in parts."""
    texts, thoughts = "", ""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts += part
            continue
        fields = object_in(part)
        kind = fields.get("type")
        inner = next((fields[name] for name in (str(kind), "text", "content", "refusal") if fields.get(name)), "")
        said = inner if isinstance(inner, str) else "".join(_parted(inner)) if isinstance(inner, list | dict) else ""
        if kind in _THOUGHTS:
            thoughts += said
        else:
            texts += said
    return texts, thoughts


def _merged(parts: list[tuple[Call | None, Json]]) -> list[Json]:
    """Return the fewest deltas that hold these parts in this order."""
    deltas: list[Json] = []
    for call, part in parts:
        if call is None:
            deltas.append(dict(part))
            continue
        last = deltas[-1] if deltas else None
        if last is None:
            deltas.append(last := {})
        calls = last.setdefault("tool_calls", [])
        if isinstance(calls, list):
            calls.append(part)
    return deltas
