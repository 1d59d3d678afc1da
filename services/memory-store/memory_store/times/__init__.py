"""Times that a text names ("last Friday"), as days, without a language model."""

from memory_store.times.reading import MOST_TIMES, times_in

__all__ = ["MOST_TIMES", "times_in"]
