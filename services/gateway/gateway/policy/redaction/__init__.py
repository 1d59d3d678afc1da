"""Finds secrets and personal data in texts by rules, without a model."""
