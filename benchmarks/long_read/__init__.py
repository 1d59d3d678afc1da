"""Measures the overhead of long reading beside its engine: time, CPU, memory, concurrent jobs."""
