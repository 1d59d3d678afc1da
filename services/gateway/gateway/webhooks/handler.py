"""The worker's handler for webhooks: makes one delivery attempt per run."""

import logging
from datetime import UTC, datetime

import aiohttp

from gateway.addresses import AddressRefused, CheckedResolver, Lookup, system_lookup
from gateway.metrics import Metrics
from gateway.queue import Hold, JobGone, JobRecords, JobResult, Lease
from gateway.webhooks.deliveries import Delivery, memory_hooks
from gateway.webhooks.webhooks import WebhookRules
from memloop.wire.errors import MemloopError, Unavailable
from memloop_state.link import State

_LOG = logging.getLogger(__name__)
_GONE = 410


class NotDelivered(MemloopError):
    """The receiver did not accept the message: the attempt counts."""


class DeliveryHandler:
    """Delivers webhooks. Only the response's status counts: bodies are not read and redirects not followed."""

    def __init__(
        self, state: State, rules: WebhookRules, metrics: Metrics, *, timeout_s: float, lookup: Lookup = system_lookup
    ) -> None:
        self._jobs = JobRecords(state)
        self._hooks = memory_hooks(state)
        self._rules = rules
        self._metrics = metrics
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._lookup = lookup

    async def run(self, lease: Lease, hold: Hold) -> JobResult:
        """Make one attempt. Raises NotDelivered, and Unavailable while this worker has no secret."""
        del hold
        if (delivery := await self._jobs.payload(lease.job_id, Delivery)) is None:
            raise JobGone(lease.job_id)
        if delivery.hook_id is not None and await self._hooks.get(delivery.tenant, delivery.hook_id) is None:
            self._count("gone")
            return JobResult("gone", "")
        if self._rules.secrets is None:
            raise Unavailable("This worker has no MEMLOOP_WEBHOOK_SECRET.")
        at = datetime.now(UTC)
        signatures = self._rules.secrets.signatures(delivery.tenant, message_id=delivery.id, at=at, body=delivery.body)
        status = await self._attempt(
            delivery,
            {
                "Content-Type": "application/json",
                "User-Agent": "memloop",
                "webhook-id": delivery.id,
                "webhook-timestamp": str(int(at.timestamp())),
                "webhook-signature": signatures,
            },
        )
        if status != _GONE and not 200 <= status < 300:
            self._count("failed")
            raise NotDelivered(f"The receiver answered {status}.")
        outcome = "gone" if status == _GONE else "delivered"
        self._count(outcome)
        return JobResult(outcome, "")

    async def give_up(self, lease: Lease, error: MemloopError, *, attempts: int) -> JobResult:
        """Count and log the dead letter. The client can still fetch its read."""
        self._count("dead")
        _LOG.warning("webhook %s: gave up after %d attempts: %s", lease.job_id, attempts, error.message)
        return JobResult("failed", "")

    async def cancelled(self, lease: Lease) -> JobResult:
        """Raise JobGone: a delivery cannot be cancelled; deleting its read deletes it."""
        raise JobGone(lease.job_id)

    async def _attempt(self, delivery: Delivery, headers: dict[str, str]) -> int:
        """Send the message and return the response's status. Raises NotDelivered when there is no response."""
        try:
            async with (
                self._session() as session,
                session.post(delivery.url, data=delivery.body, headers=headers, allow_redirects=False) as response,
            ):
                return response.status
        except (aiohttp.ClientError, OSError, ValueError) as error:
            refused = isinstance(getattr(error, "os_error", error), AddressRefused)
            self._count("refused" if refused else "failed")
            problem = "its address is not public" if refused else type(error).__name__
            raise NotDelivered(f"The receiver could not be reached: {problem}.") from error

    def _session(self) -> aiohttp.ClientSession:
        """Create a client for one attempt; it keeps no connections, names or cookies."""
        addresses = self._rules.addresses
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(addresses, self._lookup),
            socket_factory=addresses.open_socket,
            use_dns_cache=False,
            force_close=True,
        )
        return aiohttp.ClientSession(
            connector=connector, timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
        )

    def _count(self, outcome: str) -> None:
        self._metrics.longread_webhooks.labels(outcome).inc()
