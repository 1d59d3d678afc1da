"""The HTTP face of Memloop: OpenAI routes, long reading, memory, and the worker behind them."""
