"""Scripts, error translation and key names for Redis."""
