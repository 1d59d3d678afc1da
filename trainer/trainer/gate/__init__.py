"""The gate before serving: measures a candidate through a real gateway, beside the incumbent.

``run`` holds the order of the steps; a registry entry is produced only without reasons against the candidate.
"""
