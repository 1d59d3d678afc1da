"""Keeps the chart's schema and the page of its values in step with ``values.yaml``."""
