"""Jobs on the whole collection: re-embedding, flush, snapshot."""
