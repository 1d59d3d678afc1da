"""Measures the gain of each engine speed-up for the loops, on the tiny model and real vLLM."""
