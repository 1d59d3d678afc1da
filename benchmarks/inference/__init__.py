"""What each speed-up of an engine is worth to the loops, on the tiny model and real vLLM."""
