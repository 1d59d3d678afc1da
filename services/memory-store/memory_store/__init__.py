"""Items, versions and hybrid retrieval on Qdrant; buffers of turns."""
