"""Memories over HTTP, their durable writes, and the writer that decides what to remember."""
