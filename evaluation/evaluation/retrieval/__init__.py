"""What each trick of the store's retrieval is worth, on made-up conversations: no model, no server."""
