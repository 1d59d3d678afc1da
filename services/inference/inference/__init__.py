"""Starts and watches an unmodified inference engine."""
