"""The user, agent and run that a request names in its metadata and headers."""

from collections.abc import Mapping, Sequence

from gateway.access.principal import Principal
from memloop.wire.chat import NO_OPTIONS, MemoryOptions
from memloop.wire.memory import Namespace
from memloop.wire.names import named
from memloop_service.headers import AGENT_HEADER, USER_HEADER


def namespace_named(
    principal: Principal,
    metadata: Mapping[str, str],
    headers: Mapping[str, str],
    *,
    options: MemoryOptions = NO_OPTIONS,
    others: Sequence[tuple[str, str | None]] = (),
) -> Namespace | None:
    """Return the namespace that metadata and headers name, the same way; ``others`` are further names of the user."""
    user_id = _first(
        ("memory.user_id", options.user_id),
        ("metadata.user_id", metadata.get("user_id")),
        ("X-Memory-User-Id", _in_header(headers, USER_HEADER)),
        *others,
    )
    if user_id is None:
        return None
    agent_id = _first(
        ("memory.agent_id", options.agent_id),
        ("metadata.agent_id", metadata.get("agent_id")),
        ("X-Memory-Agent-Id", _in_header(headers, AGENT_HEADER)),
    )
    run_id = _first(("memory.run_id", options.run_id), ("metadata.run_id", metadata.get("run_id")))
    return Namespace(tenant=principal.tenant, user_id=user_id, agent_id=agent_id, run_id=run_id)


def _in_header(headers: Mapping[str, str], name: str) -> str | None:
    """Return an id from a header, whose bytes are UTF-8 as in a body or, where they are not, Latin-1."""
    value = headers.get(name)
    if value is None or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _first(*candidates: tuple[str, str | None]) -> str | None:
    for place, value in candidates:
        if value:
            return named(value, param=place)
    return None
