"""The local stack: its processes, their order, readiness and supervision."""
