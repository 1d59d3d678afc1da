"""Measures the gateway's overhead beside the bare engine and LiteLLM's proxy in one run: ``make bench-gateway``."""
