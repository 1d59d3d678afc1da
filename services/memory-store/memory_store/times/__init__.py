"""Times that a text names ("last Friday"), as days, without a language model."""

from memory_store.times.reading import asked_for, times_in, times_of

__all__ = ["asked_for", "times_in", "times_of"]
