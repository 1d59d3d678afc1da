"""Estimates a run's GPUs and hours on paper: the transformer's formulas and named assumptions."""
