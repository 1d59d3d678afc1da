"""Defines every Redis key name of the gateway and its worker.

Keys that one script uses share a hash tag in braces (``memloop_service.redis_link``), so they are in one cluster slot:

* A job shares a tag with its queue, lane, journal, events and index. Two hex digits in its id give the place:
  ``evt_7f…`` is at place 0x7f. A memory write takes them from its user, whose writes share a lane; a file from its
  tenant; a webhook from its read, since one step may end both. A read's digits are random, so that a tenant's reads
  spread over the cluster.
* A tenant's stored contents share a tag with its quota, and so do its stored responses and its conversations.
* API keys share a tag with the audit log of their changes.
* All other keys are used alone and have no tag.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redis.asyncio import Redis

from memloop_service.redis_link import place_of, tags_of

_ID = re.compile(r"[a-z]+[_-]([0-9a-f]{2})")

API_KEYS: Final = "memloop:{api-keys}"
API_KEYS_USED: Final = "memloop:{api-keys}:used"
API_KEYS_LOG: Final = "memloop:{api-keys}:log"
WRITES_REFUSED: Final = "memloop:writes-refused"
FILES_EXPIRING: Final = "memloop:files:expiring"
MEMORY_HOOK_TENANTS: Final = "memloop:{memory-webhooks}:tenants"
MEMORY_HOOK_PLACES: Final = "memloop:{memory-webhooks}:places"
MEMORY_HOOK_LOCK: Final = "memloop:{memory-webhooks}:lock"


@dataclass(frozen=True, slots=True)
class Partition:
    """The key names under one tag. ``queue`` is a queue's name, ``lane`` a lane's."""

    tag: str

    def stream(self, queue: str) -> str:
        """Name the stream of tickets."""
        return f"memloop:{{{self.tag}}}:jobs:{queue}"

    def turns(self, queue: str) -> str:
        """Name the sorted set of tenants with a lane that waits for a worker, in the order of their turns."""
        return f"memloop:{{{self.tag}}}:turns:{queue}"

    def picks(self, queue: str) -> str:
        """Name the hash that counts how many lanes were taken of each of these tenants since it began to wait."""
        return f"memloop:{{{self.tag}}}:picks:{queue}"

    def since(self, queue: str) -> str:
        """Name the sorted set of the lanes that wait for a worker, by the time since when."""
        return f"memloop:{{{self.tag}}}:since:{queue}"

    def bell(self, queue: str) -> str:
        """Name the list that holds one element while a lane waits, so that idle workers wake up."""
        return f"memloop:{{{self.tag}}}:bell:{queue}"

    @property
    def queued_bytes(self) -> str:
        """The hash of the bytes that each tenant's unfinished jobs hold, over all queues."""
        return f"memloop:{{{self.tag}}}:queued-bytes"

    def waiting(self, queue: str) -> str:
        """Name the sorted set of unfinished jobs, by time."""
        return f"memloop:{{{self.tag}}}:open:{queue}"

    def lane(self, queue: str, lane: str) -> str:
        """Name the list of a lane's jobs."""
        return f"memloop:{{{self.tag}}}:lane:{queue}:{lane}"

    def lock(self, queue: str, lane: str) -> str:
        """Name the lock whose value is the lane's holder."""
        return f"memloop:{{{self.tag}}}:lock:{queue}:{lane}"

    def changed(self, queue: str, lane: str) -> str:
        """Name the time at which a job of the lane last ended or an erasure began, kept for a minute after either."""
        return f"memloop:{{{self.tag}}}:changed:{queue}:{_digest(lane)}"

    @property
    def fence(self) -> str:
        """The counter of fencing tokens."""
        return f"memloop:{{{self.tag}}}:fence"

    @property
    def dead(self) -> str:
        """The stream of dead letters."""
        return f"memloop:{{{self.tag}}}:dead"

    def erasures(self, lane: str) -> str:
        """Name the hash of the lane's erased scopes, each with the token of its last erasure. It outlives the user."""
        return f"memloop:{{{self.tag}}}:erased:{_digest(lane)}"

    def job(self, job_id: str) -> str:
        """Name the hash of a job: payload, record, status, counters."""
        return f"memloop:{{{self.tag}}}:job:{job_id}"

    def journal(self, job_id: str) -> str:
        """Name the hash of the replies and decisions that a job has already made."""
        return f"memloop:{{{self.tag}}}:journal:{job_id}"

    def read_events(self, read_id: str) -> str:
        """Name the stream of a read's events."""
        return f"memloop:{{{self.tag}}}:read-events:{read_id}"

    def events_of(self, tenant: str, user_id: str) -> str:
        """Name the sorted set of a user's memory events, by time. A tenant's name contains no colon."""
        return f"memloop:{{{self.tag}}}:events:{tenant}:{user_id}"

    def failed_write_of(self, tenant: str, user_id: str) -> str:
        """Name the record of a user's last failed memory write."""
        return f"memloop:{{{self.tag}}}:failed-write:{tenant}:{user_id}"

    def reads_of(self, tenant: str) -> str:
        """Name the sorted set of the tenant's reads in this partition, by time."""
        return f"memloop:{{{self.tag}}}:reads:{tenant}"

    def webhooks_of(self, tenant: str) -> str:
        """Name the sorted set of the tenant's webhook deliveries in this partition, by time."""
        return f"memloop:{{{self.tag}}}:webhooks:{tenant}"

    def files_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's files, by time."""
        return f"memloop:{{{self.tag}}}:files:{tenant}"

    def blob(self, tenant: str, sha256: str) -> str:
        """Name the hash of a content: its place and its holders."""
        return f"memloop:{{{self.tag}}}:blob:{tenant}:{sha256}"

    def blob_bytes(self, tenant: str) -> str:
        """Name the counter of bytes that a tenant stores."""
        return f"memloop:{{{self.tag}}}:blob-bytes:{tenant}"

    def response(self, tenant: str, response_id: str) -> str:
        """Name the hash of a stored response."""
        return f"memloop:{{{self.tag}}}:response:{tenant}:{response_id}"

    def responses_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's responses, by the time at which they expire."""
        return f"memloop:{{{self.tag}}}:responses:{tenant}"

    def response_sizes(self, tenant: str) -> str:
        """Name the hash of the bytes of a tenant's responses, with their sum."""
        return f"memloop:{{{self.tag}}}:response-sizes:{tenant}"

    def responses_of_user(self, tenant: str, user_id: str) -> str:
        """Name the sorted set of a user's responses, by the time at which they expire."""
        return f"memloop:{{{self.tag}}}:responses-of:{tenant}:{user_id}"

    def responses_erased(self, tenant: str, user_id: str) -> str:
        """Name the hash of a user's erased scopes, for responses that are being made. It outlives the user."""
        return f"memloop:{{{self.tag}}}:responses-erased:{tenant}:{_digest(user_id)}"

    def conversation(self, tenant: str, conversation_id: str) -> str:
        """Name the hash of a conversation: metadata, owners, the number of items so far."""
        return f"memloop:{{{self.tag}}}:conversation:{tenant}:{conversation_id}"

    def conversation_order(self, tenant: str, conversation_id: str) -> str:
        """Name the sorted set of a conversation's items, by their number."""
        return f"memloop:{{{self.tag}}}:conversation-order:{tenant}:{conversation_id}"

    def conversation_items(self, tenant: str, conversation_id: str) -> str:
        """Name the hash of a conversation's items."""
        return f"memloop:{{{self.tag}}}:conversation-items:{tenant}:{conversation_id}"

    def conversations_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's conversations, by the time at which they expire."""
        return f"memloop:{{{self.tag}}}:conversations:{tenant}"

    def conversation_sizes(self, tenant: str) -> str:
        """Name the hash of the bytes of a tenant's conversations, with their sum."""
        return f"memloop:{{{self.tag}}}:conversation-sizes:{tenant}"

    def conversations_of_user(self, tenant: str, user_id: str) -> str:
        """Name the sorted set of the conversations that a user has a part in, by the time at which they expire."""
        return f"memloop:{{{self.tag}}}:conversations-of:{tenant}:{user_id}"

    def background_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's background responses, by time."""
        return f"memloop:{{{self.tag}}}:background:{tenant}"

    def vector_store(self, tenant: str, store_id: str) -> str:
        """Name the hash of a vector store: its fields, and the number of its files by status."""
        return f"memloop:{{{self.tag}}}:vector-store:{tenant}:{store_id}"

    def vector_store_files(self, tenant: str, store_id: str) -> str:
        """Name the hash of a vector store's files."""
        return f"memloop:{{{self.tag}}}:vector-store-files:{tenant}:{store_id}"

    def vector_stores_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's vector stores, by time."""
        return f"memloop:{{{self.tag}}}:vector-stores:{tenant}"

    def vector_stores_of_user(self, tenant: str, user_id: str) -> str:
        """Name the set of a user's vector stores."""
        return f"memloop:{{{self.tag}}}:vector-stores-of:{tenant}:{user_id}"

    def vector_stores_with(self, tenant: str, file_id: str) -> str:
        """Name the set of the vector stores that a file is in."""
        return f"memloop:{{{self.tag}}}:vector-stores-with:{tenant}:{file_id}"

    def indexing_of(self, tenant: str) -> str:
        """Name the sorted set of a tenant's files that are being indexed, by time."""
        return f"memloop:{{{self.tag}}}:indexing:{tenant}"

    @property
    def vector_stores_ending(self) -> str:
        """The sorted set of vector stores that expire, by the time."""
        return f"memloop:{{{self.tag}}}:vector-stores-ending"

    @property
    def loose(self) -> str:
        """The sorted set of objects that belong to no content, by the time from which they may be deleted."""
        return f"memloop:{{{self.tag}}}:blobs:loose"

    @property
    def holders(self) -> str:
        """The sorted set of holders, by the time of their next check."""
        return f"memloop:{{{self.tag}}}:blobs:holders"


class Keys:
    """The partitions of one Redis: one for a single server, twelve for a cluster."""

    def __init__(self, redis: Redis) -> None:
        self.partitions: Sequence[Partition] = tuple(Partition(tag) for tag in tags_of(redis))

    def of_name(self, name: str) -> Partition:
        """Return the partition of a lane's or a tenant's name."""
        return self._at(place_of(name))

    def of_id(self, job_id: str) -> Partition:
        """Return a job's partition. An id of a foreign format maps to the first one, where no such job exists."""
        found = _ID.match(job_id)
        return self._at(int(found[1], 16) if found else 0)

    def job(self, job_id: str) -> str:
        """Name the hash of a job."""
        return self.of_id(job_id).job(job_id)

    def _at(self, place: int) -> Partition:
        return self.partitions[place % len(self.partitions)]


def event_id(lane: str, digits: str) -> str:
    """Make the id of a memory write in a lane from 32 hex digits, of which 30 are kept."""
    return f"evt_{place_of(lane):02x}{digits[2:]}"


def file_id(tenant: str, digits: str) -> str:
    """Make the id of a tenant's file from 32 hex digits, of which 30 are kept."""
    return f"file-{place_of(tenant):02x}{digits[2:]}"


def response_id(tenant: str, digits: str) -> str:
    """Make the id of a tenant's response from 32 hex digits, of which 30 are kept."""
    return f"resp_{place_of(tenant):02x}{digits[2:]}"


def conversation_id(tenant: str, digits: str) -> str:
    """Make the id of a tenant's conversation from 32 hex digits, of which 30 are kept."""
    return f"conv_{place_of(tenant):02x}{digits[2:]}"


def vector_store_id(tenant: str, digits: str) -> str:
    """Make the id of a tenant's vector store from 32 hex digits, of which 30 are kept."""
    return f"vs_{place_of(tenant):02x}{digits[2:]}"


def indexing_id(tenant: str, digits: str) -> str:
    """Make the id of the job that indexes a tenant's file from 32 hex digits, of which 30 are kept."""
    return f"vsj_{place_of(tenant):02x}{digits[2:]}"


def delivery_id(read_id: str, digits: str) -> str:
    """Make the id of a message at the place of its read or subscription, from 32 hex digits, of which 30 are kept."""
    found = _ID.match(read_id)
    return f"msg_{found[1] if found else '00'}{digits[2:]}"


def api_keys_of(tenant: str) -> str:
    """Name the sorted set of a tenant's keys."""
    return f"memloop:{{api-keys}}:of:{tenant}"


def audit(kind: str, tenant: str) -> str:
    """Name a stream of the audit log. A tenant's name contains no colon; entries without a tenant have their own.

    The stream ``admin`` shares the API keys' tag, because one script writes both.
    """
    return f"memloop:{{api-keys}}:audit:{kind}:{tenant}" if kind == "admin" else f"memloop:audit:{kind}:{tenant}"


def rate_window(bucket: str) -> str:
    """Name the hash of a key's usage in the last minute."""
    return f"memloop:rate:{bucket}"


def idempotency(digest: str) -> str:
    """Name the record of a request with an ``Idempotency-Key``."""
    return f"memloop:once:{digest}"


def idempotency_of(digest: str) -> str:
    """Name the sorted set of idempotency records that hold a subject's data."""
    return f"memloop:once-of:{digest}"


def mcp_call(digest: str) -> str:
    """Name the key that maps a call of an MCP session to its read."""
    return f"memloop:mcp:{digest}"


def policies_of(tenant: str) -> str:
    """Name the hash of a tenant's memory policies, by level."""
    return f"memloop:policies:{tenant}"


def memory_hooks_of(tenant: str) -> str:
    """Name the hash of a tenant's subscriptions to changes. One script changes it with the two keys below."""
    return f"memloop:{{memory-webhooks}}:of:{tenant}"


def trace_switch(tenant: str) -> str:
    """Name the switch that keeps a tenant's traces. All trace keys of a tenant share the tenant's tag."""
    return f"memloop:traces:{{{tenant}}}:on"


def traces_of(tenant: str) -> str:
    """Name the sorted set of the tenant's traces, by time."""
    return f"memloop:traces:{{{tenant}}}:all"


def traces_of_user(tenant: str, user_id: str) -> str:
    """Name the sorted set of the traces of a user's writes, by time."""
    return f"memloop:traces:{{{tenant}}}:of:{user_id}"


def trace_body(tenant: str, trace_id: str) -> str:
    """Name the hash of a trace."""
    return f"memloop:traces:{{{tenant}}}:trace:{trace_id}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
