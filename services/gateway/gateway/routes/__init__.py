"""The gateway's HTTP routes, one module per capability, each with a ``router``."""
