"""Packages and pushes the chart."""
