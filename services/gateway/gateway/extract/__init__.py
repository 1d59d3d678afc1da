"""Extracts the text of files of every kind, in a process of its own: ``python -I -m gateway.extract``."""

from gateway.extract.source import PAGE_END, Unreadable

__all__ = ["PAGE_END", "Unreadable"]
