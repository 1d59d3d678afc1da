"""Responses that a worker makes (``background: true``): queued as jobs, so that they survive every process."""
