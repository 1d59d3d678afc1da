"""Turns that wait for more context, kept in Redis."""
