"""Recall on the same facts in several languages."""
