"""Measures redaction: ``make bench-redaction``."""
