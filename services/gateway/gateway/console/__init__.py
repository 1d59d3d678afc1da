"""Serves the console, a page for people, and the interactive page of the API: static files that a build made."""
