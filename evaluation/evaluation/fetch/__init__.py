"""Fetches the public files of published benchmarks, at the user's wish, from their own addresses."""
