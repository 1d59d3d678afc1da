"""What the gateway adds to a call, beside the bare engine and LiteLLM's proxy, in one run: ``make bench-gateway``."""
