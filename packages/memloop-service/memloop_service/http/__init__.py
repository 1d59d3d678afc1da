"""Bodies, deadlines, streams, admission: HTTP without any resource of a service."""

from memloop.wire.chat import object_in, objects_in, parsed_object
from memloop_service.http.admission import Admission, Capacity, Held, Lane, Limit
from memloop_service.http.bodies import (
    JsonBody,
    read_as,
    read_json,
    read_ours,
    read_with,
    refuse_half_characters,
    strictly,
    validated,
)
from memloop_service.http.deadline import deadline_s, within
from memloop_service.http.event_stream import (
    DONE,
    ClientGone,
    EventStream,
    Outlet,
    Sink,
    Source,
    data_event,
    error_event,
    stopped_when_gone,
)
from memloop_service.http.fragments import Fragment, body_of, engines_body, streams, with_schema
from memloop_service.http.json_output import json_response, json_text

__all__ = [
    "DONE",
    "Admission",
    "Capacity",
    "ClientGone",
    "EventStream",
    "Fragment",
    "Held",
    "JsonBody",
    "Lane",
    "Limit",
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
    "refuse_half_characters",
    "stopped_when_gone",
    "streams",
    "strictly",
    "validated",
    "with_schema",
    "within",
]
