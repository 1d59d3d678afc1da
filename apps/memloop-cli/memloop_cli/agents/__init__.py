"""Connects coding agents with the gateway: their configuration, and the commands that their hooks run."""
