"""Items, versions and hybrid retrieval on Qdrant; buffers on Redis."""
