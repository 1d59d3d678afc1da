"""Spreads a client's requests over the replicas of one server."""
