"""Documents from the web: downloaded for a client, from addresses that the operator allows."""
