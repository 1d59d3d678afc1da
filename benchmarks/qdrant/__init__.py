"""What a search costs the vector store: Qdrant Edge, and a Qdrant cluster over REST and over gRPC, in one run."""
