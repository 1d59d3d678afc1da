"""What the memory costs, beside mem0 and the bare parts, and how well it finds: ``make bench-memory``."""
