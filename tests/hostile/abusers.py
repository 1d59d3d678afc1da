"""The abusers by name, in the order in which they run, and the control."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from tests.hostile import bodies, engines, floods, holders
from tests.hostile.abusing import Abuse

CONTROL: Final = "busy cores"
ABUSERS: Final[Mapping[str, Callable[[Abuse], Awaitable[None]]]] = {
    "followers": holders.followers,
    "slow readers": holders.slow_readers,
    "slow bodies": holders.slow_bodies,
    "giant JSON": bodies.giant_json,
    "deep JSON": bodies.deep_json,
    "metadata bombs": bodies.metadata_bombs,
    "regex bait": bodies.regex_bait,
    "odd values": bodies.odd_values,
    "stalling engine": engines.stalling,
    "dripping engine": engines.dripping,
    "hanging webhooks": engines.hanging_webhooks,
    "flood of adds": floods.adds,
    "flood of reads": floods.reads,
    "flood of files": floods.files,
    "flood of events": floods.events,
}
ALL: Final = {CONTROL: engines.busy_cores} | dict(ABUSERS)
