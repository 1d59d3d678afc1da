"""Uploaded files and document texts: storage, records, extraction, and chunks loaded one at a time."""

from gateway.extract import PAGE_END as PAGE_END
from gateway.files.blobs import Blob as Blob
from gateway.files.files import Files as Files
from gateway.files.records import FileRecords as FileRecords
from gateway.files.records import ReadableFile as ReadableFile
from gateway.files.storage import Storage as Storage
from gateway.files.texts import ChunkIndex as ChunkIndex
from gateway.files.texts import StoredChunks as StoredChunks
from gateway.files.texts import chunk_index as chunk_index
from gateway.files.texts import store_text as store_text
from gateway.files.texts import stored_chunks as stored_chunks
from gateway.files.texts import utf8_blocks as utf8_blocks
