"""Records by id, by fact and by the writes that made them, so that a write of many statements stays linear."""

from collections.abc import Iterable
from datetime import datetime

from memloop.wire.memory import Outcome, Written
from memory_store.items.conflicts import Version
from memory_store.items.documents import Record

_OUTCOMES: tuple[Outcome, ...] = ("inserted", "touched", "superseded")


class KnownRecords:
    """``at``: the ingest time that decides which records are expired."""

    def __init__(self, records: Iterable[Record], *, at: datetime) -> None:
        self._at = at
        self._by_id: dict[str, Record] = {}
        self._by_write: dict[str, str] = {}
        self._facts: dict[str, dict[str, Version | None]] = {}
        self._numbers: dict[str, int] = {}
        for record in records:
            self.put(record)

    def __getitem__(self, item_id: str) -> Record:
        return self._by_id[item_id]

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._by_id

    def ids(self) -> Iterable[str]:
        """Returns the ids in the order in which they came."""
        return self._by_id

    def put(self, record: Record) -> None:
        """Adds a record or replaces the one of the same id."""
        item = record.item
        self._by_id[item.id] = record
        self._facts.setdefault(record.chain, {})[item.id] = None if record.is_over(self._at) else record.as_version()
        self._numbers[record.chain] = max(item.version, self._numbers.get(record.chain, 0))
        for write in record.writes:
            self._by_write.setdefault(write, item.id)

    def fact(self, chain: str) -> list[Record]:
        """Returns all records of a fact, deleted ones too."""
        return [self._by_id[item_id] for item_id in self._facts.get(chain, ())]

    def versions(self, chain: str) -> list[Version]:
        """Returns the versions that a statement is compared with: neither deleted nor expired ones."""
        return [version for version in self._facts.get(chain, {}).values() if version is not None]

    def next_number(self, chain: str) -> int:
        """Returns the number of the fact's next version."""
        return self._numbers.get(chain, 0) + 1

    def earlier_outcome(self, write: str | None) -> Written | None:
        """Returns the outcome of a former delivery of the same write, if it was recorded."""
        if write is None:
            return None
        for outcome in _OUTCOMES:
            item_id = self._by_write.get(f"{write}:{outcome}")
            if item_id is not None:
                return Written(outcome=outcome, item=self._by_id[item_id].item)
        return None
