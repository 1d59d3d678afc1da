"""Texts to dense and sparse vectors."""
