"""Measures the gain of each retrieval boost on made-up conversations, without a model or a server."""
