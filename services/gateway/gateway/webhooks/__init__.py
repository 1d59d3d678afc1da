"""Webhooks: telling a client's own address that its background read is over, as Standard Webhooks describes it."""
