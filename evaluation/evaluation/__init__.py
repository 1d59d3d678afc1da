"""Measures quality on a user's own data: memory answers, retrieval recall, and the reading loops."""
