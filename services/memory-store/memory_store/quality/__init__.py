"""Finds suspect memories of a namespace by rules over their texts, without a model."""
