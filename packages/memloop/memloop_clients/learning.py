"""Detects an endpoint's dialect, and learns from its refusals about each of its models.

The loops' requests and the chats of clients share what is learned: a role that a loop was refused is not tried in a
chat again, nor the other way round.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeAlias, cast
from weakref import WeakValueDictionary

from memloop.templates import ANY_ROLES, ChatTemplate, refuses_roles, stricter
from memloop.wire.chat import Json
from memloop.wire.errors import EngineError, MemloopError, Timeout, Unavailable
from memloop_clients.dialects import ANY, ENDPOINTS, Dialect, Endpoint, messages_of
from memloop_clients.refusals import may_refuse_format, refused_fields, refuses_format

_LOG = logging.getLogger(__name__)
_PROBE_S: Final = 3.0
MOST_CHANGES: Final = 6
"""Changes of the dialect within one call."""
MOST_MODELS: Final = 256
"""Models whose dialects are kept: clients name what they like."""

Get: TypeAlias = Callable[[str], Awaitable[Json]]
"""Reads the JSON object at a path. Raises MemloopError."""
Post: TypeAlias = Callable[[Json], Awaitable[Json]]
"""Sends a chat in the endpoint's form. Raises EngineError."""


class Learned:
    """Holds the dialects of one endpoint, by model id; those that were used last, if there are many.

    ``endpoint`` is None when neither a setting nor the host names it: then the first call probes. A call refused for a
    field changes its model's dialect and is sent again. Calls refused at the same time wait for the one that learns.
    """

    def __init__(self, endpoint: Endpoint | None, *, below: Get, beside: Get) -> None:
        """``below`` reads under the base URL, ``beside`` under the server's root."""
        self._endpoint = endpoint
        self._below = below
        self._beside = beside
        self._models = OrderedDict[str, Dialect]()
        self.templates: dict[str, ChatTemplate] = {}
        """The templates that do not take every chat, by model."""
        self._learning = WeakValueDictionary[str, asyncio.Lock]()
        self._probing = asyncio.Lock()

    async def dialect(self, model: str) -> Dialect:
        """Return the model's dialect as known so far."""
        if model in self._models:
            self._models.move_to_end(model)
            return self._models[model]
        endpoint = await self.endpoint()
        dialect = (endpoint or ANY).dialect_of(model)
        spoken = replace(dialect, template=self.templates[model]) if model in self.templates else dialect
        return spoken if endpoint is None else self._models.get(model) or self._keep(model, spoken)

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

    async def endpoint(self) -> Endpoint | None:
        """Return the kind of endpoint; None while it is unreachable."""
        return self._endpoint or await self._probed()

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
                    return await post(spoken.fit(body))
                except EngineError as error:
                    refusal = error
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

    async def _probed(self) -> Endpoint | None:
        """Detect the endpoint by its list of models, else by the paths beside it; None while it is unreachable."""
        async with self._probing:
            if self._endpoint is None:
                try:
                    async with asyncio.timeout(_PROBE_S):
                        self._endpoint = await self._recognised()
                except (MemloopError, TimeoutError):
                    return None
                _LOG.info("the engine's dialect is %s", self._endpoint.dialect.name)
            return self._endpoint

    async def _recognised(self) -> Endpoint:
        listing = await _answer(self._below, "models")
        rows = listing.get("data")
        found = cast(list[object], rows) if isinstance(rows, list) else []
        owned = (cast(Mapping[str, object], row).get("owned_by") for row in found if isinstance(row, dict))
        owners = {owner for owner in owned if isinstance(owner, str)}
        for endpoint in ENDPOINTS.values():
            if endpoint.owner in owners:
                return endpoint
        for endpoint in ENDPOINTS.values():
            if endpoint.probe is not None:
                path, field = endpoint.probe
                if field in await _answer(self._beside, path):
                    return endpoint
        return ANY


async def _answer(get: Get, path: str) -> Json:
    """Return the answer; empty when the endpoint has no such path. Raises Unavailable, Timeout."""
    try:
        return await get(path)
    except (Unavailable, Timeout):
        raise
    except MemloopError:
        return {}


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
