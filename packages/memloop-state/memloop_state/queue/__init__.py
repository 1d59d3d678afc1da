"""Durable jobs in lanes: their keys and records, tickets, the steps of a lane, journals and dead letters."""
