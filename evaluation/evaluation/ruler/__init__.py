"""Runs MemAgent's evaluation on a user's RULER files, through the gateway's loops, on many engines."""
