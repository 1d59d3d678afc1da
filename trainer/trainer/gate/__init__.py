"""The gate before serving: a candidate is measured through a real gateway, beside the model that serves now.

``run`` is the order of things; a registry entry comes out of it only when nothing speaks against the candidate.
"""
