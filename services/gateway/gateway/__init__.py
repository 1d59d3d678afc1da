"""Memloop's HTTP API: OpenAI routes, long reading and memory, and the worker that runs their background jobs."""
