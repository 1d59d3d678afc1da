"""What long reading costs beside its engine: time, processor, memory, jobs held at once."""
