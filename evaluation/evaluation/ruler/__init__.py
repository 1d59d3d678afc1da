"""MemAgent's evaluation on a user's own RULER files, through the loops that the gateway runs, on many engines."""
