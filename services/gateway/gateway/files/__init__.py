"""Uploaded files and document texts: storage, records, extraction, and chunks loaded one at a time."""
