"""Chats with recalled notes, on the chat templates of public models."""
