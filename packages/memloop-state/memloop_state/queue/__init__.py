"""Durable jobs in lanes: their keys and records, the steps of a lane, journals and dead letters."""
