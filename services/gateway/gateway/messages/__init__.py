"""Anthropic's Messages API with memory, translated to chat completions and back."""
