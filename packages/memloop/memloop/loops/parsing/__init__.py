"""One parser for each kind of reply. All of them read the model's reply, and nothing else: no document, no memory."""
