"""Turns that wait for more context."""
