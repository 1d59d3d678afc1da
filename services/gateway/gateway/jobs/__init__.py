"""Queues and dead letters, for operators over HTTP."""
