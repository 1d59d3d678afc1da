"""Runs a publication's table as it was made, and prints its figures beside ours."""
