"""Uploaded files and the texts of documents: storage, records, extraction, chunks loaded one at a time."""
