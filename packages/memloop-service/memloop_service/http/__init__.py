"""Bodies, deadlines, streams, admission: HTTP without any resource of a service."""

from memloop.wire.base import object_in, objects_in, parsed_object
from memloop_service.http.admission import (
    Admission,
    Awaited,
    Capacity,
    ClientGone,
    DeadlinePassed,
    Lane,
    Limit,
    deadline_s,
)
from memloop_service.http.bodies import (
    JsonBody,
    Model,
    json_response,
    json_text,
    read_as,
    read_json,
    read_ours,
    read_with,
    strictly,
    validated,
)
from memloop_service.http.event_stream import DONE, EventStream, Outlet, Sink, Source, data_event, error_event
from memloop_service.http.fragments import Fragment, body_of, engines_body, streams, with_schema

__all__ = [
    "DONE",
    "Admission",
    "Awaited",
    "Capacity",
    "ClientGone",
    "DeadlinePassed",
    "EventStream",
    "Fragment",
    "JsonBody",
    "Lane",
    "Limit",
    "Model",
    "Outlet",
    "Sink",
    "Source",
    "body_of",
    "data_event",
    "deadline_s",
    "engines_body",
    "error_event",
    "json_response",
    "json_text",
    "object_in",
    "objects_in",
    "parsed_object",
    "read_as",
    "read_json",
    "read_ours",
    "read_with",
    "streams",
    "strictly",
    "validated",
    "with_schema",
]
