"""Times that a text names, on made-up sentences."""
