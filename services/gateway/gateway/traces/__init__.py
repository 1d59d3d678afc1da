"""Traces of loops for training: kept for tenants that asked for it, redacted before they are kept."""
