"""Backup and restore of all that a stack keeps: Redis, vectors, documents (docs/backup.md)."""
