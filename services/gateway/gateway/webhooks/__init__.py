"""Webhooks: notify a client's URL when its background read ends, following the Standard Webhooks specification."""
