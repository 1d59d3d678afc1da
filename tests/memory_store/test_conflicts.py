"""The pure rules: what ``test_writing`` does not show one by one, and properties over any order of statements."""

from datetime import UTC, datetime, timedelta
from itertools import count, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.items.statements import Placement, Resolution, Version, repair, resolve

_START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number: int) -> datetime:
    return _START + timedelta(days=number)


def version(
    value: str, start: int, end: int | None = None, *, confirmed: int | None = None, number: int = 1
) -> Version:
    confirmed_at = day(confirmed if confirmed is not None else start)
    return Version(f"{value}{start}", value, number, day(start), confirmed_at, None if end is None else day(end))


def test_another_value_at_the_very_same_time_supersedes() -> None:
    resolution = resolve("rome", day(3), [version("paris", 3)])

    assert resolution.rule == "changed fact"


def test_an_older_statement_between_two_versions_ends_the_first_and_is_ended_by_the_second() -> None:
    resolution = resolve("oslo", day(4), [version("paris", 2, 6), version("rome", 6, number=2)])

    assert resolution.placed == Placement(day(4), valid_to=day(6), supersedes="paris2")
    assert [(change.id, change.valid_to) for change in resolution.changes] == [("paris2", day(4)), ("rome6", None)]


def test_an_older_statement_of_the_live_value_makes_it_valid_earlier() -> None:
    resolution = resolve("rome", day(4), [version("paris", 2, 6), version("rome", 6, number=2)])

    assert (resolution.outcome, resolution.rule, resolution.touched) == ("touched", "known later", "rome6")
    assert [(change.id, change.valid_from, change.valid_to) for change in resolution.changes] == [
        ("paris2", None, day(4)),
        ("rome6", day(4), None),
    ]


def test_a_statement_about_a_time_in_history_is_a_touch() -> None:
    resolution = resolve("paris", day(3), [version("paris", 2, 6), version("rome", 6, number=2)])

    assert (resolution.rule, resolution.touched) == ("same fact", "paris2")


def test_of_two_live_versions_the_earlier_one_is_ended() -> None:
    versions = [version("rome", 5, number=2), version("paris", 2), version("oslo", 1, 2)]

    [change] = repair(versions)

    assert (change.id, change.valid_to) == ("paris2", day(5))


class Timeline:
    """Applies resolutions the way the store does, on bare versions."""

    def __init__(self) -> None:
        self.versions: dict[str, Version] = {}
        self._ids = count()

    def state(self, value: str, at: int) -> Resolution:
        resolution = resolve(value, day(at), list(self.versions.values()))
        for change in resolution.changes:
            old = self.versions[change.id]
            if change.keeps_first_half_until:
                half = f"v{next(self._ids)}"
                self.versions[half] = Version(
                    half, old.value_hash, old.number, old.valid_from, old.valid_from, change.keeps_first_half_until
                )
            self.versions[old.id] = Version(
                old.id,
                old.value_hash,
                old.number,
                change.valid_from or old.valid_from,
                change.confirmed_at or old.confirmed_at,
                change.valid_to or old.valid_to,
            )
        if resolution.placed:
            new = f"v{next(self._ids)}"
            start, end = resolution.placed.valid_from, resolution.placed.valid_to
            self.versions[new] = Version(new, value, len(self.versions) + 1, start, start, end)
        return resolution

    @property
    def live(self) -> list[Version]:
        return [version for version in self.versions.values() if version.valid_to is None]

    def at(self, moment: int) -> list[str]:
        return [version.value_hash for version in self.versions.values() if version.covers(day(moment))]


_statements = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(0, 12)), min_size=1, max_size=10, unique_by=lambda pair: pair[1]
)


@given(_statements)
def test_the_live_value_is_always_the_one_stated_last_in_event_time(statements: list[tuple[str, int]]) -> None:
    timeline = Timeline()
    for value, at in statements:
        timeline.state(value, at)

    [live] = timeline.live
    assert live.value_hash == max(statements, key=lambda pair: pair[1])[0]


@given(_statements)
def test_at_no_moment_do_two_versions_hold(statements: list[tuple[str, int]]) -> None:
    timeline = Timeline()
    for value, at in statements:
        timeline.state(value, at)

    assert all(len(timeline.at(moment)) <= 1 for moment in range(14))


@given(_statements)
def test_stating_the_latest_value_a_second_time_changes_nothing(statements: list[tuple[str, int]]) -> None:
    timeline = Timeline()
    for value, at in statements:
        timeline.state(value, at)
    before = {moment: timeline.at(moment) for moment in range(14)}

    latest = max(statements, key=lambda pair: pair[1])
    resolution = timeline.state(*latest)

    assert resolution.outcome == "touched"
    assert {moment: timeline.at(moment) for moment in range(14)} == before


@pytest.mark.parametrize("order", list(permutations([("A", 1), ("B", 3), ("A", 5), ("C", 7)])), ids=str)
def test_the_order_of_arrival_does_not_change_what_held_when(order: tuple[tuple[str, int], ...]) -> None:
    timeline = Timeline()
    for value, at in order:
        timeline.state(value, at)

    assert [timeline.at(moment) for moment in range(9)] == [[], ["A"], ["A"], ["B"], ["B"], ["A"], ["A"], ["C"], ["C"]]


def test_a_version_that_ended_where_it_began_is_ignored() -> None:
    zero_length, live = version("oslo", 4, 4, number=2), version("rome", 4, number=1)

    assert repair([zero_length, live]) == ()
    assert resolve("oslo", day(2), [zero_length, live]).placed == Placement(day(2), valid_to=day(4))
