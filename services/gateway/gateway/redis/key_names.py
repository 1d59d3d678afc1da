"""Every name that the gateway and its worker use in Redis.

What one script touches has one tag, in braces (``memloop_service.redis_link``), so that a cluster has it in one slot:

* A job lies with its queue, its lane, its journal, its events and the index that lists it. Two hex digits in its id
  tell where: ``evt_7f…`` lies at place 0x7f. The digits of a memory write follow from its user, whose writes share a
  lane; those of a file from its tenant; those of a webhook from its read, for both may end in one step; a read's are
  random, so that one tenant's reads spread over all of a cluster.
* What is stored for a tenant lies with its quota.
* Keys and the audit of their changes lie together.
* All else is one key by itself, and needs no tag.
"""

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


@dataclass(frozen=True, slots=True)
class Partition:
    """The names under one tag. ``queue`` is a queue's name, ``lane`` a lane's."""

    tag: str

    def stream(self, queue: str) -> str:
        """The tickets."""
        return f"memloop:{{{self.tag}}}:jobs:{queue}"

    def waiting(self, queue: str) -> str:
        """The sorted set of the jobs that are not done, by time."""
        return f"memloop:{{{self.tag}}}:open:{queue}"

    def lane(self, queue: str, lane: str) -> str:
        """The list of a lane's jobs."""
        return f"memloop:{{{self.tag}}}:lane:{queue}:{lane}"

    def lock(self, queue: str, lane: str) -> str:
        """Who holds the lane."""
        return f"memloop:{{{self.tag}}}:lock:{queue}:{lane}"

    @property
    def fence(self) -> str:
        """The last fencing token."""
        return f"memloop:{{{self.tag}}}:fence"

    @property
    def dead(self) -> str:
        """The stream of dead letters."""
        return f"memloop:{{{self.tag}}}:dead"

    def job(self, job_id: str) -> str:
        """The hash of a job: payload, record, status, counters."""
        return f"memloop:{{{self.tag}}}:job:{job_id}"

    def journal(self, job_id: str) -> str:
        """The hash of what a job has already paid for or decided."""
        return f"memloop:{{{self.tag}}}:journal:{job_id}"

    def read_events(self, read_id: str) -> str:
        """The stream of a read's events."""
        return f"memloop:{{{self.tag}}}:read-events:{read_id}"

    def events_of(self, tenant: str, user_id: str) -> str:
        """The sorted set of a user's memory events by time. A tenant's name holds no colon."""
        return f"memloop:{{{self.tag}}}:events:{tenant}:{user_id}"

    def failed_write_of(self, tenant: str, user_id: str) -> str:
        """The last failed memory write of a user."""
        return f"memloop:{{{self.tag}}}:failed-write:{tenant}:{user_id}"

    def reads_of(self, tenant: str) -> str:
        """The sorted set of those of a tenant's reads that lie here, by time."""
        return f"memloop:{{{self.tag}}}:reads:{tenant}"

    def webhooks_of(self, tenant: str) -> str:
        """The sorted set of those of a tenant's deliveries that lie here, by time."""
        return f"memloop:{{{self.tag}}}:webhooks:{tenant}"

    def files_of(self, tenant: str) -> str:
        """The sorted set of a tenant's files by time."""
        return f"memloop:{{{self.tag}}}:files:{tenant}"

    def blob(self, tenant: str, sha256: str) -> str:
        """The hash of a content: where it is and who holds it."""
        return f"memloop:{{{self.tag}}}:blob:{tenant}:{sha256}"

    def blob_bytes(self, tenant: str) -> str:
        """How many bytes a tenant stores."""
        return f"memloop:{{{self.tag}}}:blob-bytes:{tenant}"

    @property
    def loose(self) -> str:
        """The sorted set of objects that belong to no content, by when they may go."""
        return f"memloop:{{{self.tag}}}:blobs:loose"

    @property
    def holders(self) -> str:
        """The sorted set of holders, by when to look at them."""
        return f"memloop:{{{self.tag}}}:blobs:holders"


class Keys:
    """The partitions of one Redis: one of a single server, twelve of a cluster."""

    def __init__(self, redis: Redis) -> None:
        self.partitions: Sequence[Partition] = tuple(Partition(tag) for tag in tags_of(redis))

    def of_name(self, name: str) -> Partition:
        """Where what follows from a name lies: of a lane, or of a tenant."""
        return self._at(place_of(name))

    def of_id(self, job_id: str) -> Partition:
        """Where a job lies. An id that nobody of ours made lies somewhere, and is not there."""
        found = _ID.match(job_id)
        return self._at(int(found[1], 16) if found else 0)

    def job(self, job_id: str) -> str:
        """The hash of a job."""
        return self.of_id(job_id).job(job_id)

    def _at(self, place: int) -> Partition:
        return self.partitions[place % len(self.partitions)]


def event_id(lane: str, digits: str) -> str:
    """The id of a memory write in that lane, made of 32 hex digits of which 30 stay."""
    return f"evt_{place_of(lane):02x}{digits[2:]}"


def file_id(tenant: str, digits: str) -> str:
    """The id of a tenant's file, made of 32 hex digits of which 30 stay."""
    return f"file-{place_of(tenant):02x}{digits[2:]}"


def delivery_id(read_id: str, digits: str) -> str:
    """The id of the message about a read's end: at the read's place, made of 32 hex digits of which 30 stay."""
    found = _ID.match(read_id)
    return f"msg_{found[1] if found else '00'}{digits[2:]}"


def api_keys_of(tenant: str) -> str:
    """The sorted set of a tenant's keys."""
    return f"memloop:{{api-keys}}:of:{tenant}"


def audit(kind: str, tenant: str) -> str:
    """A stream of the audit log. A tenant's name holds no colon; entries of no tenant have one of their own.

    Changes of keys are written in one step with them.
    """
    return f"memloop:{{api-keys}}:audit:{kind}:{tenant}" if kind == "admin" else f"memloop:audit:{kind}:{tenant}"


def rate_window(bucket: str) -> str:
    """What a key has used in the last minute."""
    return f"memloop:rate:{bucket}"


def idempotency(digest: str) -> str:
    """The record of a request with an ``Idempotency-Key``."""
    return f"memloop:once:{digest}"


def idempotency_of(digest: str) -> str:
    """The sorted set of the records that hold a subject's data."""
    return f"memloop:once-of:{digest}"


def mcp_call(digest: str) -> str:
    """Which read a call of an MCP session runs."""
    return f"memloop:mcp:{digest}"


def trace_switch(tenant: str) -> str:
    """Whether the tenant's traces are kept; all names of a tenant's traces have its own tag."""
    return f"memloop:traces:{{{tenant}}}:on"


def traces_of(tenant: str) -> str:
    """The sorted set of the tenant's traces by time."""
    return f"memloop:traces:{{{tenant}}}:all"


def traces_of_user(tenant: str, user_id: str) -> str:
    """The sorted set of the traces of a user's writes by time."""
    return f"memloop:traces:{{{tenant}}}:of:{user_id}"


def trace_body(tenant: str, trace_id: str) -> str:
    """The hash of a trace."""
    return f"memloop:traces:{{{tenant}}}:trace:{trace_id}"
