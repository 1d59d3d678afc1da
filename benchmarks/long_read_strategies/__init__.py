"""Compares each reading strategy's quality and cost with plain MemAgent, in the tiny model's world, on
a real engine.
"""
