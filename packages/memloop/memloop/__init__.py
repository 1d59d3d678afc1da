"""Memloop: long-term memory and very long reading, as loops over small ports."""
