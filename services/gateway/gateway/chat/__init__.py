"""Chat completions with memory: recall before the engine is called, a queued write after it has answered."""
