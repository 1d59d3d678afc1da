"""Traces of loops for training: kept for tenants that opted in, redacted before they are stored."""
