"""Runs a published project's own loop and ours on one scripted model, and compares every request."""
