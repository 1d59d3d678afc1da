"""Comparison of two runs on the same questions."""
