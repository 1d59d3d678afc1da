"""Compares readers of files on folders of public documents: words, order, pages, time, memory, crashes."""
