"""Offline training through the same loops that serve."""
