"""Keeps what each tenant has spent: the tokens of every model by the hour."""
