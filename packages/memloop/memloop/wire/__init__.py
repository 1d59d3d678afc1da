"""Frozen models of what crosses HTTP, and nothing else."""
