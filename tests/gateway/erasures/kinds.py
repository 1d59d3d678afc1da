"""The kinds of keys in Redis: what each holds, whose it is, and how the erasure of a user reaches it.

Every key has a kind, named by its first part behind the partition's tag, or by its first part where it has no tag. A
test looks at all keys of a running stack: one without a kind here fails it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Holds: TypeAlias = Literal["texts", "ids", "settings"]
"""What a client said; ids, names, counts and times; what a tenant or an operator has set."""
Erased: TypeAlias = Literal["owner", "user", "never"]
"""Found by the record's owners; by the user's own index, lane or key; not at all."""

_TAGGED: Final = re.compile(r"memloop:\{([^}]*)\}(?::([^:]+))?")
_OWN_TAGS: Final = ("api-keys",)
"""Tags that are no partitions: all their keys are of one kind."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of key. ``erased`` says how an erasure finds those of a user."""

    name: str
    holds: Holds
    erased: Erased
    what: str


def _kinds(*rows: tuple[str, Holds, Erased, str]) -> Mapping[str, Kind]:
    return {row[0]: Kind(*row) for row in rows}


KINDS: Final = _kinds(
    # owners, lanes and queues
    ("owned", "ids", "owner", "the index of a user's records"),
    ("owners", "ids", "owner", "a tenant's users with records, by name"),
    ("erased", "ids", "never", "marks of erasures, by digest: they outlive the user"),
    ("job", "texts", "user", "a job: payload, record, status. Reads, files and responses name owners; writes, a user"),
    ("journal", "texts", "user", "replies and decisions of a job; deleted with it"),
    ("read-events", "texts", "user", "events of a read or a response; deleted with its job"),
    ("dead", "texts", "user", "dead letters of all queues; deleted with their jobs"),
    ("jobs", "ids", "user", "lanes that wait, are held, or are delayed"),
    ("open", "ids", "user", "unfinished jobs, by time"),
    ("lane", "ids", "user", "a lane's jobs"),
    ("lock", "ids", "user", "the holder of a lane"),
    ("changed", "ids", "never", "when a lane changed, by digest, for a minute"),
    ("fence", "ids", "never", "the counter of fencing tokens"),
    ("turns", "ids", "never", "tenants with waiting lanes"),
    ("picks", "ids", "never", "how many lanes of a tenant were taken"),
    ("since", "ids", "user", "waiting lanes, by time"),
    ("bell", "ids", "never", "wakes idle workers"),
    ("queued-bytes", "ids", "never", "the bytes of each tenant's unfinished jobs"),
    # records of users
    ("events", "ids", "user", "a user's memory writes"),
    ("failed-write", "ids", "user", "a user's last failed write, without its text"),
    ("writes-refused", "ids", "never", "how many writes were refused"),
    ("writer-decided", "ids", "never", "when the memory writer last gave a usable decision"),
    ("kept-events", "ids", "user", "writes that were kept verbatim, by time"),
    ("reads", "ids", "owner", "a tenant's reads"),
    ("webhooks", "ids", "owner", "a tenant's deliveries"),
    ("trace", "texts", "owner", "a trace"),
    ("traces", "ids", "owner", "a tenant's traces"),
    ("trace-switch", "settings", "never", "whether a tenant keeps traces"),
    ("response", "texts", "owner", "a stored response with its input"),
    ("responses", "ids", "owner", "a tenant's responses"),
    ("response-sizes", "ids", "owner", "their bytes"),
    ("background", "ids", "owner", "a tenant's background responses"),
    ("conversation", "texts", "owner", "a conversation"),
    ("conversation-order", "ids", "owner", "the order of its items"),
    ("conversation-rows", "texts", "owner", "its items"),
    ("conversations", "ids", "owner", "a tenant's conversations"),
    ("conversation-sizes", "ids", "owner", "their bytes"),
    ("files", "ids", "owner", "a tenant's files; without a partition, those that expire"),
    ("files-reserved", "ids", "never", "uploads in progress with their announced bytes, for a minute"),
    ("blob", "ids", "owner", "the place and the holders of a content in the storage"),
    ("blob-bytes", "ids", "never", "the bytes that a tenant stores"),
    ("blobs", "ids", "owner", "contents without holders, and holders to look at"),
    ("vector-store", "texts", "owner", "a vector store"),
    ("vector-store-rows", "texts", "owner", "its files with their attributes"),
    ("vector-store-order", "ids", "owner", "the order of its files"),
    ("vector-store-sizes", "ids", "owner", "their bytes"),
    ("vector-stores", "ids", "owner", "a tenant's vector stores"),
    ("vector-stores-ending", "ids", "owner", "the vector stores that expire"),
    ("indexing", "ids", "owner", "a tenant's jobs that index files"),
    ("once", "texts", "user", "the answer kept for an Idempotency-Key"),
    ("once-of", "ids", "user", "the answers that hold a scope's data, by digest"),
    ("policies", "texts", "user", "a tenant's memory policies; a user's are fields of their own"),
    # tenants and operators
    ("api-keys", "settings", "never", "API keys, their uses, their changes and the audit log of them"),
    ("audit", "ids", "never", "the audit log: ids and names, no text"),
    ("memory-webhook", "settings", "never", "a tenant's subscription to changes: it reports the erasure"),
    ("memory-webhooks", "ids", "never", "a tenant's subscriptions"),
    ("memory-webhooks-tenants", "ids", "never", "tenants with subscriptions"),
    ("memory-webhooks-lock", "ids", "never", "the process that serves them"),
    ("rate", "ids", "never", "rate limits of API keys"),
    ("usage", "ids", "never", "tokens of a tenant by model and hour"),
    ("rollouts", "settings", "never", "shares of candidate models"),
    ("rollout", "ids", "never", "calls of candidate models"),
    ("mcp", "ids", "never", "requests of MCP that were cancelled, by digest"),
    # the memory store
    ("buffers", "texts", "user", "a user's buffered turns"),
    ("buffered-users", "ids", "user", "a tenant's users with buffers"),
    ("buffers-by-time", "ids", "user", "all buffers, by time"),
    ("lane-fence", "ids", "never", "the newest token of a lane, by digest"),
    ("erasures", "ids", "never", "marks of erasures, by digest: they outlive the user"),
    ("writing", "ids", "never", "writes on their way into the vector store"),
    ("unsettled-writes", "ids", "never", "points of writes that are not over"),
    ("changes", "ids", "never", "a tenant's feed of changes: ids and names, no text"),
    ("changes-state", "ids", "never", "the feed's end"),
    ("changes-unsure", "ids", "never", "changes whose writes are on their way"),
    ("gate", "ids", "never", "which collection is in service"),
    ("passages", "ids", "never", "writes and erasures that change it now"),
    ("pending", "ids", "never", "what a copy of it lacks: points, and scopes of erasures, until it has them"),
    ("unsettled", "ids", "never", "users with writes that are not settled, until they are"),
    ("service", "ids", "never", "the collection in service"),
    ("stores", "ids", "never", "the stores that share it"),
    ("copied", "ids", "never", "written before an acknowledged write's wait"),
)


def kind_of(key: str) -> Kind | None:
    """Return the kind of a key, None for a key of no known kind."""
    if (tagged := _TAGGED.match(key)) is not None:
        name = tagged[1] if tagged[1] in _OWN_TAGS else tagged[2]
    else:
        name = key.removeprefix("memloop:").partition(":")[0] if key.startswith("memloop:") else ""
    return KINDS.get(name or "")
