"""Uploaded files and document texts: storage, records, extraction, and chunks loaded one at a time."""

from gateway.files.blobs import Blob
from gateway.files.extraction import PAGE_END
from gateway.files.files import Files
from gateway.files.records import FileRecords, ReadableFile
from gateway.files.storage import Storage
from gateway.files.texts import ChunkIndex, StoredChunks, chunk_index, store_text, stored_chunks, utf8_blocks

__all__ = [
    "PAGE_END",
    "Blob",
    "ChunkIndex",
    "FileRecords",
    "Files",
    "ReadableFile",
    "Storage",
    "StoredChunks",
    "chunk_index",
    "store_text",
    "stored_chunks",
    "utf8_blocks",
]
