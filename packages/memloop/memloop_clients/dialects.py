"""Describes the requests that a model behind a public chat endpoint accepts, and learns that from its refusals.

Loops write one canonical request, vLLM's form of OpenAI's chat completions. ``Dialect.fit`` converts it to the form
that an endpoint accepts. Nothing else in the project depends on the kind of endpoint; :mod:`memloop_clients.endpoints`
lists the kinds.

The loops' requests and the chats of clients share what is learned: a role that a loop was refused is not tried in a
chat again, nor the other way round.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, cast
from weakref import WeakValueDictionary

from pydantic import JsonValue

from memloop.ports import ReplyFormat
from memloop.templates import ANY_ROLES, ChatTemplate, fitted, refuses_roles, stricter, teaches
from memloop.wire.chat import EARLIER_THINKING, LIMIT_FIELDS, RESPONSE_FORMAT, THINKING_SWITCH, Json
from memloop.wire.errors import EngineError
from memloop_clients.refusals import may_refuse_format, refused_fields, refuses_format

_LOG = logging.getLogger(__name__)
LimitField: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
FormatType: TypeAlias = Literal["json_schema", "json_object"]
MOST_CHANGES: Final = 6
"""Changes of the dialect within one call."""
MOST_MODELS: Final = 256
"""Models whose dialects are kept: clients name what they like."""

First: TypeAlias = Callable[[str], Awaitable["Dialect | None"]]
"""Returns the dialect of a model before the first refusal; None while the endpoint is not known."""
Post: TypeAlias = Callable[[Json], Awaitable[Json]]
"""Sends a chat in the endpoint's form. Raises EngineError."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The request fields and values that an endpoint, or one of its models, accepts.

    ``leaves_out``: fields that it rejects, of the request or (``reasoning_content``) of an earlier message.
    ``tool_choices``: the values of ``tool_choice`` that it accepts; ``named`` stands for an object that names a tool.
    ``effort``: the ``reasoning_effort`` of a request without thinking; ``tools_effort``: of one with tools. None omits
    the field. ``reasoning_room``: tokens added to the limit for thinking that the endpoint counts but does not return.
    ``of_reasoning``: the dialect of its reasoning models, which reject a temperature. ``template``: the roles of a chat
    that the model's template takes. ``formats``: the types of ``response_format`` that it accepts, the strictest first.
    """

    name: str
    limit_field: LimitField = "max_tokens"
    leaves_out: frozenset[str] = frozenset()
    tool_choices: frozenset[str] = frozenset({"none", "auto", "required", "named"})
    effort: str | None = None
    tools_effort: str | None = None
    reasoning_room: int = 0
    of_reasoning: "Dialect | None" = None
    template: ChatTemplate = ANY_ROLES
    formats: tuple[FormatType, ...] = ("json_schema", "json_object")

    def fit(self, body: Json) -> Json:
        """Convert the canonical request to this endpoint's form."""
        sent: Json = {
            name: value
            for name, value in body.items()
            if name not in self.leaves_out and name not in LIMIT_FIELDS and name != RESPONSE_FORMAT
        }
        limit = next((body[name] for name in LIMIT_FIELDS if name in body), None)
        if isinstance(limit, int):
            sent[self.limit_field] = limit + self.reasoning_room
        sent |= self._effort(body)
        if "tool_choice" in sent:
            choice = sent["tool_choice"]
            if (choice if isinstance(choice, str) else "named") not in self.tool_choices:
                sent["tool_choice"] = "required" if "required" in self.tool_choices else "auto"
        messages = messages_of(body)
        if EARLIER_THINKING in self.leaves_out:
            messages = [
                {name: value for name, value in message.items() if name != EARLIER_THINKING} for message in messages
            ]
        if (asked := format_of(body)) is not None and self.formats:
            words, schema = _parted(asked)
            sent[RESPONSE_FORMAT] = schema if "json_schema" in self.formats else {"type": self.formats[0]}
            if words and messages and isinstance(said := messages[-1].get("content"), str):
                messages = [*messages[:-1], {**messages[-1], "content": f"{said}\n\n{words}"}]
        if "messages" in body:
            taken = messages if self.template == ANY_ROLES else fitted(messages, self.template)
            sent["messages"] = list[JsonValue](taken)
        return sent

    def refusing(self, name: str, *, message: str) -> "Dialect":
        """Return the dialect without the fields that a refusal names."""
        if name in LIMIT_FIELDS:
            other: LimitField = "max_tokens" if self.limit_field == "max_completion_tokens" else "max_completion_tokens"
            return replace(self, limit_field=other)
        if name in {"temperature", "top_p"} and self.of_reasoning is not None:
            return replace(self.of_reasoning, limit_field=self.limit_field)
        if name == "tool_choice":
            return replace(self, tool_choices=frozenset({"none", "auto"}))
        if name == "reasoning_effort" and "'none'" in message and self.tools_effort != "none":
            return replace(self, tools_effort="none")
        return replace(self, leaves_out=self.leaves_out | {name})

    def without_format(self) -> "Dialect":
        """Return the dialect that asks for the next type of ``response_format``, or for none."""
        return replace(self, formats=self.formats[1:])

    def _effort(self, body: Json) -> Json:
        if "reasoning_effort" in body or "reasoning_effort" in self.leaves_out:
            return {}
        switch = cast(object, body.get(THINKING_SWITCH))
        thinks = isinstance(switch, dict) and cast(Json, switch).get("enable_thinking") is True
        effort = self.tools_effort if body.get("tools") else None if thinks else self.effort
        return {"reasoning_effort": effort} if effort is not None else {}


class Learned:
    """Holds the dialects of one endpoint, by model id; those that were used last, if there are many.

    ``first`` returns the dialect of a model before its first refusal. A call refused for a field changes its model's
    dialect and is sent again. Calls refused at the same time wait for the one that learns.
    """

    def __init__(self, first: First) -> None:
        self._first = first
        self._models = OrderedDict[str, Dialect]()
        self.templates: dict[str, ChatTemplate] = {}
        """The templates that do not take every chat, by model."""
        self._learning = WeakValueDictionary[str, asyncio.Lock]()

    async def dialect(self, model: str) -> Dialect:
        """Return the model's dialect as known so far."""
        if model in self._models:
            self._models.move_to_end(model)
            return self._models[model]
        first = await self._first(model)
        dialect = first or Dialect("any")
        spoken = replace(dialect, template=self.templates[model]) if model in self.templates else dialect
        return spoken if first is None else self._models.get(model) or self._keep(model, spoken)

    def template(self, model: str) -> ChatTemplate:
        """Return the roles that a model's chat template takes, as known so far."""
        return self.templates.get(model, ANY_ROLES)

    def describe(self, model: str, template: ChatTemplate) -> None:
        """Take what is known of a model's template before the first refusal."""
        if model in self._models:
            self._keep(model, replace(self._models[model], template=template))
        elif not template.takes_all:
            self.templates[model] = template

    async def learn_roles(self, model: str, template: ChatTemplate) -> None:
        """Keep the roles in which the engine answered a chat that it had refused."""
        self._keep(model, replace(await self.dialect(model), template=template))
        _LOG.warning("the chat template of model %s takes other roles: %s", model, template)

    async def send(self, body: Json, post: Post) -> Json:
        """Send a canonical request; return its answer. Raises ``post``'s error once nothing can be learned from it."""
        model = str(body.get("model"))
        for _ in range(MOST_CHANGES):
            spoken = await self.dialect(model)
            try:
                return await post(spoken.fit(body))
            except EngineError as refusal:
                if _changed(spoken, refusal, body) == spoken:
                    raise
                async with self._learning.setdefault(model, asyncio.Lock()):
                    if (self._models.get(model) or self._keep(model, spoken)) == spoken:
                        return await self._taught(body, post, model, refusal)
        return await post((await self.dialect(model)).fit(body))

    async def _taught(self, body: Json, post: Post, model: str, refusal: EngineError) -> Json:
        """Change the dialect until the request is answered, or refused for another reason."""
        first = spoken = await self.dialect(model)
        tried = {first}
        try:
            while (spoken := _changed(spoken, refusal, body)) not in tried and len(tried) <= MOST_CHANGES:
                tried.add(spoken)
                self._keep(model, spoken)
                try:
                    answer = await post(spoken.fit(body))
                except EngineError as error:
                    refusal = error
                else:
                    if not teaches(spoken.template, first.template, messages_of(body)):
                        self._keep(model, replace(spoken, template=first.template))
                    return answer
            # neither the roles nor the reply's format were the reason
            spoken = self._keep(model, replace(spoken, template=first.template, formats=first.formats))
            raise refusal
        finally:
            del refusal  # its traceback holds this frame: both would stay until the next collection
            _LOG.warning("the engine refuses fields for model %s: %s", model, _changes(first, spoken))

    def _keep(self, model: str, dialect: Dialect) -> Dialect:
        self._models[model] = dialect
        self._models.move_to_end(model)
        if dialect.template.takes_all:
            self.templates.pop(model, None)
        else:
            self.templates[model] = dialect.template
        while len(self._models) > MOST_MODELS:
            forgotten, _ = self._models.popitem(last=False)
            self.templates.pop(forgotten, None)
        return dialect


def _changed(spoken: Dialect, refusal: EngineError, body: Json) -> Dialect:
    """Return the dialect to try after a refusal; the same one where nothing can be learned from it."""
    sent, before = spoken.fit(body), spoken
    for name in sorted(refused_fields(refusal, sent)):
        spoken = spoken.refusing(name, message=refusal.message)
    if refuses_format(refusal, sent):
        return spoken.without_format()
    if refuses_roles(status=refusal.engine_status, message=refusal.message):
        template = next(stricter(spoken.template, messages_of(body)), spoken.template)
        spoken = replace(spoken, template=template)
    return spoken.without_format() if spoken == before and may_refuse_format(refusal, sent) else spoken


def _changes(before: Dialect, after: Dialect) -> str:
    """Format the changes of later requests, for the log."""
    changes = {
        "left out": after.leaves_out - before.leaves_out,
        "the limit's name": {after.limit_field} - {before.limit_field},
        "tool_choice": after.tool_choices if after.tool_choices != before.tool_choices else frozenset[str](),
        "reasoning_effort with tools": {str(after.tools_effort)} - {str(before.tools_effort)},
        "roles": {str(after.template)} - {str(before.template)},
        "response_format": {" or ".join(after.formats) or "none"} if after.formats != before.formats else set[str](),
    }
    found = [f"{name} {', '.join(sorted(values))}" for name, values in changes.items() if values]
    return f"{'; '.join(found) or 'nothing helps'}; MEMLOOP_ENGINE_DIALECT sets the dialect (docs/how-to/endpoints.md)"


def messages_of(body: Json) -> list[Json]:
    messages = body.get("messages")
    return [each for each in messages if isinstance(each, dict)] if isinstance(messages, list) else []


def response_format(reply: ReplyFormat) -> Json:
    """Return OpenAI's ``response_format`` of a reply; its ``description`` holds the words that ask for it."""
    held: Json = {"name": reply.name, "strict": True, "schema": reply.schema}
    return {"type": "json_schema", "json_schema": {**held, "description": reply.words} if reply.words else held}


def format_of(body: Json) -> Json | None:
    """Return the ``response_format`` of a request."""
    asked = body.get(RESPONSE_FORMAT)
    return asked if isinstance(asked, dict) else None


def _parted(asked: Json) -> tuple[str, Json]:
    """Return the words that ask for the JSON, and the format without them: not every engine has a description."""
    held = asked.get("json_schema")
    if not isinstance(held, dict) or not isinstance(words := held.get("description"), str):
        return "", asked
    return words, {**asked, "json_schema": {name: value for name, value in held.items() if name != "description"}}
