"""Vector storage: one port, two adapters (a Qdrant server, or Qdrant Edge in this process)."""
