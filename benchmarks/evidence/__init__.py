"""Measures which sentences evidence calls similar to a statement: ``make bench-evidence``."""
