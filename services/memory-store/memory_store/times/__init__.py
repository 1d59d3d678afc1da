"""Times that a text names ("last Friday"), as days, without a language model."""

from memory_store.times.reading import times_in, times_of

__all__ = ["times_in", "times_of"]
