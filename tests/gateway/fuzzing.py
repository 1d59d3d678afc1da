"""Sends what schemathesis makes of our own OpenAPI document, and tells what it found."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import CheckNode, ScenarioRecorder

from tests.gateway.running import error_in

REFUSALS: Final[Mapping[str, str]] = {
    "chunk_overlap_too_large": "a schema does not compare two numbers",
    "context_length_exceeded": "a chat is counted in the served model's tokens",
    "cursor_too_old": "which changes are still kept only the feed knows",
    "duplicate_item": "an item's id is compared with those that its conversation has",
    "empty_document": "whether a text is blank is Unicode's to say, not a pattern's",
    "empty_messages": "so is whether a message is",
    "empty_question": "and a question",
    "filter_too_large": "a schema does not count over all levels",
    "invalid_cursor": "a cursor is opaque: only a page can give one",
    "invalid_filter": "the grammar of filters is richer than its schema tells",
    "option_not_applicable": "whether the served model can follow an option is its profile's to say",
    "item_not_found": "which items are stored only the store knows",
    "long_context_too_long": "so is what of it must be read",
    "time_out_of_range": "JSON Schema has no bounds for times",
    "metadata_too_large": "nor for the bytes and levels of an object",
    "not_supported": "chat completions hold less than a message; the manual lists what is refused",
    "number_out_of_range": "JSON Schema knows no 64-bit integer, and none is kept inexactly",
    "mutually_exclusive_parameters": "a response continues a response or a conversation, which two open schemas hide",
    "invalid_name": "which names a parser, a header or a form would change is Unicode's to say",
    "unprintable_text": "which characters are printable is Unicode's to say, not a pattern's",
    "url_not_downloaded": "what an address answers is the web's to say",
    "missing_required_parameter": "a message's text may be empty, but not everything",
    "previous_response_not_found": "which responses are stored only the store knows",
    "tool_call_not_found": "a function's output belongs to a call of the same conversation",
    "too_deep": "nor the levels of an object",
    "unknown_tool": "a choice is one among the request's own tools",
    "unsupported_parameter": "a field of chat completions may have a name that a response has no place for",
    "unsupported_value": "a value may exclude that of another field, and a JSON schema of an answer needs its name",
    "question_too_long": "a question is counted in the served model's tokens",
    "window_exceeded": "a chunk beside memory and question must fit the served model's window",
}
"""What a request that fits the schema may be refused for (400, 410, 422), by its code, and why no schema can say so."""

UNSENT: Final = "/v1/memory/import"
"""A body of JSON lines, which schemathesis cannot write; it has tests of its own."""

KEPT: Final = ("/history", "/recover")
"""What still answers for a deleted memory: deletion is soft, its history stays, and it can be taken back."""

_SLOW_S: Final = 60
_LOADED_WITHIN_S: Final = 120
_OTHER_VERSION: Final = 412
"""``If-Match`` asks for it."""


@dataclass(frozen=True, order=True)
class Finding:
    """A check that failed, with one request that shows it."""

    operation: str
    check: str
    message: str
    answer: str
    request: str


@dataclass(frozen=True)
class Report:
    """What was called, and what was found."""

    operations: frozenset[str]
    requests: int
    findings: tuple[Finding, ...]

    def told(self) -> str:
        """The findings, to be read."""
        return "\n\n".join("\n".join(astuple(found)) for found in self.findings)


def fuzz(url: str, *, key: str, examples: int, seed: int, edges: bool) -> Report:
    """Every operation of the document with good and bad data; ``edges``: each field's limits too, which takes minutes.

    It blocks: run it in a thread.
    """
    config = _config(key, examples, seed, edges=edges)
    document = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config, timeout=_LOADED_WITHIN_S)
    schema = document.exclude(path=UNSENT)  # pyright: ignore[reportUnknownMemberType] - a bare pattern
    recorders: list[ScenarioRecorder] = []
    broken: list[Finding] = []
    for event in from_schema(schema).execute():
        match event:
            case events.ScenarioFinished():
                recorders.append(event.recorder)
            case events.NonFatalError() | events.FatalError():
                broken.append(Finding("schemathesis", "error", repr(event), "", ""))
            case _:
                pass
    found = {
        (finding.operation, finding.check): finding for recorder in recorders for finding in _findings_of(recorder)
    }
    return Report(
        operations=frozenset(recorder.label for recorder in recorders if recorder.interactions),
        requests=sum(len(recorder.interactions) for recorder in recorders),
        findings=(*broken, *sorted(found.values())),
    )


def _config(key: str, examples: int, seed: int, *, edges: bool) -> SchemathesisConfig:
    settings: dict[str, Any] = {
        "seed": seed,
        "headers": {"Authorization": f"Bearer {key}"},
        "continue-on-failure": True,
        "request-timeout": _SLOW_S,
        "phases": {"coverage": {"enabled": edges}},
        "generation": {"max-examples": examples, "database": "none", "no-shrink": True},
    }
    return SchemathesisConfig.from_dict(settings)  # pyright: ignore[reportUnknownMemberType] - a bare dict


def _findings_of(recorder: ScenarioRecorder) -> Iterator[Finding]:
    for case_id, checks in recorder.checks.items():
        for check in checks:
            answer = _answer(recorder, case_id)
            if check.failure_info is not None and not _excused(check, answer):
                failure = check.failure_info.failure
                yield Finding(
                    operation=recorder.label,
                    check=check.name,
                    message=f"{failure.title}: {failure.message}",
                    answer=f"{answer.status} {answer.body!r} to {answer.path}",
                    request=check.failure_info.code_sample,
                )


@dataclass(frozen=True)
class _Answer:
    path: str
    status: int = 0
    body: bytes = b""

    @property
    def code(self) -> object:
        return error_in(orjson.loads(self.body))["code"]


def _answer(recorder: ScenarioRecorder, case_id: str) -> _Answer:
    interaction = recorder.interactions.get(case_id)
    if interaction is None:
        return _Answer("")
    path = urlsplit(interaction.request.uri).path
    response = interaction.response
    return _Answer(path) if response is None else _Answer(path, response.status_code, response.content)


def _excused(check: CheckNode, answer: _Answer) -> bool:
    match check.name:
        case "not_a_server_error":
            return answer.status == 501 and answer.code == "not_implemented"
        case "positive_data_acceptance":
            return answer.status == _OTHER_VERSION or (answer.status in {400, 410, 422} and answer.code in REFUSALS)
        case "use_after_free":
            return answer.path.endswith(KEPT)
        case _:
            return False
