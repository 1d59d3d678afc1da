"""Measures the memory's speed beside mem0 and the bare parts: ``make bench-memory``."""
