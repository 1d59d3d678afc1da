"""Times that a text names ("last Friday"), as days, without a language model."""
