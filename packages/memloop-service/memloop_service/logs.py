"""Writes logs as one JSON object per line to standard output."""

import logging
import sys
from datetime import UTC, datetime
from typing import Final

import orjson

from memloop.profiles import well_formed
from memloop.wire.base import request_id, trace_id

_TALKATIVE: Final = ("httpx", "httpcore")
"""They log every request at info: Qdrant's client sends several for one search."""


class JsonLines(logging.Formatter):
    """``time`` (UTC), ``level``, ``service``, ``logger``, ``message``; and ``request_id``, ``trace_id``, ``error``.

    Fields that a caller passes as ``extra={"fields": {...}}`` are added to the object.
    """

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "service": self._service,
            "logger": record.name,
            "message": well_formed(record.getMessage()),
        }
        fields |= getattr(record, "fields", {})
        if request_id.get():
            fields["request_id"] = request_id.get()
        if trace_id():
            fields["trace_id"] = trace_id()
        if record.exc_info:
            fields["error"] = well_formed(self.formatException(record.exc_info))
        return orjson.dumps(fields).decode()


def configure_logging(service: str, level: str) -> None:
    """Route all loggers of this process, including uvicorn's, to one handler."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines(service))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    own = logging.getLogger().level
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(own if own <= logging.DEBUG else max(own, logging.WARNING))
