"""Tries on one GPU what this repository can only write without one: ``make gpu-proof``."""
