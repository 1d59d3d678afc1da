"""Computes with long bodies in one thread, tenants in turn, so that the event loop goes on with all other requests.

To join, count, parse and validate a body of megabytes takes tens of milliseconds each. On the event loop every other
request would wait for it at each of its own dozen turns there. A second thread would not help: both want the
interpreter's lock. The order is that of the queues (docs/decisions/0047-tenants-take-turns.md).

One call of a parser holds that lock for as long as it takes, and a client can send one long body after the other. So a
long computation is followed by a rest of three times its length: the event loop meets a held lock in a quarter of its
turns at most (docs/decisions/0083-long-bodies-leave-the-interpreter-to-others.md).
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Final, TypeVar, cast

from starlette.types import Scope

from memloop_service.waiting_line import WaitingLine

INLINE_BYTES: Final = 16_384
"""Bodies up to this length are parsed on the event loop: a thread would take longer."""
LONG_S: Final = 0.004
"""A computation that takes longer is followed by a rest."""
REST: Final = 3.0
_MOST_REST_S: Final = 0.5
TURNS: Final = "memloop.turns"
"""The key in a request's scope that holds the process's ``Turns``."""
TENANT: Final = "memloop.tenant"
"""The key in a request's scope that holds the caller's tenant, once it is known."""
_Result = TypeVar("_Result")


class Turns:
    """Runs one computation at a time, in a thread; a tenant's next one runs after one of each other tenant.

    ``clock`` returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "turns")
        self._line = WaitingLine[str]()
        self._busy = False

    async def run(self, tenant: str, work: Callable[[], _Result]) -> _Result:
        """Return what ``work`` returns. One that has begun runs to its end, even if its caller is cancelled."""
        await self._turn(tenant)
        loop, began = asyncio.get_running_loop(), self._clock()
        running = loop.run_in_executor(self._thread, copy_context().run, work)
        running.add_done_callback(partial(self._over, began))
        return await asyncio.shield(running)

    async def _turn(self, tenant: str) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = self._line.join(tenant)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._next()
            raise

    def _over(self, began: float, running: "asyncio.Future[_Result]") -> None:
        del running
        took_s = self._clock() - began
        if took_s <= LONG_S:
            self._next()
        else:
            asyncio.get_running_loop().call_later(min(REST * took_s, _MOST_REST_S), self._next)

    def _next(self) -> None:
        self._busy = self._line.release()


async def in_turn(scope: Scope, size: int, work: Callable[[], _Result]) -> _Result:
    """Compute something with a request's body of that many bytes: here if it is short, else in the thread."""
    if size <= INLINE_BYTES or TURNS not in scope:
        return work()
    return await cast(Turns, scope[TURNS]).run(scope.get(TENANT, ""), work)
