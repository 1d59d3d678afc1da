"""Bodies, deadlines, streams, idempotency, admission, callable addresses: HTTP without any of our resources."""

from gateway.http.addresses import AddressRefused, AddressRules
from gateway.http.admission import Admission, Capacity, Lane, Limit
from gateway.http.bodies import JsonBody, read_as, read_json, read_ours, read_with, strictly, validated
from gateway.http.deadline import deadline_s, within
from gateway.http.disconnect import ClientGone, StopWhenGone
from gateway.http.event_stream import EventStream, Outlet, Sink, Source
from gateway.http.fair_start import FairStart
from gateway.http.fragments import Fragment, body_of, engines_body, streams
from gateway.http.idempotency import (
    KEY_HEADER,
    Attempt,
    Idempotency,
    refuse_key_of_batch,
    refuse_key_of_stream,
    subject_of_read,
    subject_of_response,
    subject_of_user,
)
from gateway.http.json_output import json_text
from gateway.http.lenient_json import object_in, objects_in, parsed_object
from gateway.http.resolving import CheckedResolver, Lookup, system_lookup
from gateway.http.sse import DONE, EventCutter, data_event, data_of, error_event

__all__ = [
    "DONE",
    "KEY_HEADER",
    "AddressRefused",
    "AddressRules",
    "Admission",
    "Attempt",
    "Capacity",
    "CheckedResolver",
    "ClientGone",
    "EventCutter",
    "EventStream",
    "FairStart",
    "Fragment",
    "Idempotency",
    "JsonBody",
    "Lane",
    "Limit",
    "Lookup",
    "Outlet",
    "Sink",
    "Source",
    "StopWhenGone",
    "body_of",
    "data_event",
    "data_of",
    "deadline_s",
    "engines_body",
    "error_event",
    "json_text",
    "object_in",
    "objects_in",
    "parsed_object",
    "read_as",
    "read_json",
    "read_ours",
    "read_with",
    "refuse_key_of_batch",
    "refuse_key_of_stream",
    "streams",
    "strictly",
    "subject_of_read",
    "subject_of_response",
    "subject_of_user",
    "system_lookup",
    "validated",
    "within",
]
