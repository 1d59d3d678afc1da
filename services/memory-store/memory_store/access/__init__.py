"""The bearer key of the internal API."""
