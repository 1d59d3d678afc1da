"""Offline training: the loops that serve are the loops that learn."""
