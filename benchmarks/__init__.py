"""Measures speed and memory beside a floor or a peer in the same run; the last line is one JSON object."""
