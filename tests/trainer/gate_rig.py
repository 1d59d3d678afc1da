"""A served model without a model, gateway and launcher on one port, with answers by a function; a candidate."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from memloop.profiles import load_profile, profile_files
from memloop.wire.checkpoint import RECORD, CheckpointRecord
from memloop.wire.errors import MemloopError
from memloop.wire.long_read import Estimate, LongRead, LongReadRequest
from tests.fakes.web_server import serving
from trainer.data import schemas
from trainer.data.parquet import write_parquet
from trainer.data.rows import AgentName, reading_row
from trainer.gate.command import main
from trainer.gate.conformance import Served
from trainer.rollout.export_record import tokenizer_sha256, tools_sha256, weights_sha256

ROWS = 16
PROFILE = load_profile("tiny")
TOKENIZER = b'{"model": {}}'
ESTIMATE = Estimate(profile="", chunks=1, document_tokens=8, max_llm_calls=2, max_input_tokens=64, max_output_tokens=16)


def write_candidate(folder: Path, weights: bytes = b"candidate") -> CheckpointRecord:
    """An export whose weights are these bytes."""
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    (folder / "model.safetensors").write_bytes(weights)
    return write_record(folder, step=20)


def write_record(folder: Path, *, step: int) -> CheckpointRecord:
    """The record of an export whose other files are there."""
    record = CheckpointRecord(
        started_from="memloop-tiny",
        step=step,
        dtype="bfloat16",
        profile=PROFILE.ref,
        profile_hash=PROFILE.content_hash,
        tools_hash=tools_sha256(PROFILE),
        tokenizer_sha256=tokenizer_sha256(folder),
        weights_sha256=weights_sha256(folder),
    )
    (folder / RECORD).write_text(record.model_dump_json())
    return record


def write_rows(path: Path, count: int = ROWS, agent: AgentName = "memagent") -> Path:
    """Rows whose question is their number, and whose answer is too."""
    rows = [
        reading_row(
            data_source="t", index=n, id_=str(n), question=str(n), answers=(str(n),), context=f"It is {n}.", agent=agent
        )
        for n in range(count)
    ]
    write_parquet(rows, path, schemas.READING)
    return path


def right(asked: LongReadRequest) -> str:
    """The answer that every row of ``write_rows`` wants."""
    return str(asked.question)


def wrong_below(number: int) -> Callable[[LongReadRequest], str]:
    """Right but on the first rows."""
    return lambda asked: "?" if int(right(asked)) < number else right(asked)


@dataclass
class ServedModel:
    """``answer`` makes a read's answer, or raises: a MemloopError refuses the request, a ValueError fails the read.

    ``asked`` are the reads that were asked for, ``held`` those that nobody has deleted.
    """

    answer: Callable[[LongReadRequest], str] = right
    record: CheckpointRecord | None = None
    models: tuple[str, ...] = ("memloop-tiny",)
    profile: str = "tiny"
    gateway_profile: str = PROFILE.ref
    tokenizer: bytes = TOKENIZER
    asked: list[LongReadRequest] = field(default_factory=list[LongReadRequest])
    held: dict[str, LongRead] = field(default_factory=dict[str, LongRead])
    url: str = ""

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self._models),
            web.post("/v1/long-read/estimate", self._estimate),
            web.post("/v1/long-read", self._create),
            web.get("/v1/long-read/{id}", self._poll),
            web.delete("/v1/long-read/{id}", self._delete),
            web.get("/v1/model", self._model),
            web.get("/v1/profile", self._profile),
            web.get("/v1/tokenizer", self._tokenizer),
        ]

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in self.models]})

    async def _estimate(self, _: web.Request) -> web.Response:
        return web.json_response(ESTIMATE.model_copy(update={"profile": self.gateway_profile}).model_dump())

    async def _create(self, request: web.Request) -> web.Response:
        asked = LongReadRequest.model_validate_json(await request.read())
        self.asked.append(asked)
        read = LongRead(
            id=f"lr_{len(self.asked)}", status="queued", created_at=0, model=asked.model or "", strategy="memagent"
        )
        try:
            ended = read.model_copy(update={"status": "completed", "output_text": self.answer(asked)})
        except MemloopError as error:
            body = error.envelope().model_dump_json()
            return web.Response(text=body, status=error.http_status, content_type="application/json")
        except ValueError:
            ended = read.model_copy(update={"status": "failed"})
        self.held[read.id] = ended
        return web.json_response(text=read.model_dump_json(by_alias=True), status=202)

    async def _poll(self, request: web.Request) -> web.Response:
        return web.json_response(text=self.held[request.match_info["id"]].model_dump_json(by_alias=True))

    async def _delete(self, request: web.Request) -> web.Response:
        del self.held[request.match_info["id"]]
        return web.json_response({"deleted": True})

    async def _model(self, _: web.Request) -> web.Response:
        told = {"id": self.models[0], "engine_url": f"{self.url}/v1", "max_model_len": 1024}
        record = None if self.record is None else json.loads(self.record.model_dump_json())
        return web.json_response({**told, "checkpoint": record})

    async def _profile(self, _: web.Request) -> web.Response:
        return web.json_response({"ref": self.profile, "files": profile_files(self.profile)})

    async def _tokenizer(self, _: web.Request) -> web.Response:
        return web.Response(body=self.tokenizer)


@asynccontextmanager
async def serve(model: ServedModel) -> AsyncGenerator[ServedModel]:
    """The model, served at its ``url`` meanwhile."""
    async with serving(model.routes()) as url:
        model.url = url
        yield model


async def conforms(served: Served, log: Path) -> list[str]:
    """An engine check with nothing to say."""
    del served, log
    return []


@dataclass(frozen=True)
class Rig:
    """A candidate and an incumbent that are served, and rows to measure them on."""

    folder: Path
    candidate: ServedModel
    incumbent: ServedModel

    async def gate(self, *more: str, check: Callable[[Served, Path], Awaitable[list[str]]] = conforms) -> int:
        """The status of a run, in a thread, for it has an event loop of its own; ``more`` overrides."""
        options = {
            "--candidate": str(self.folder / "tiny-new"),
            "--gateway": self.candidate.url,
            "--inference": self.candidate.url,
            "--incumbent": "memloop-tiny",
            "--incumbent-gateway": self.incumbent.url,
            "--held-out": str(self.folder / "rows.parquet"),
            "--out": str(self.folder / "out"),
            "--margin": "0.2",
            "--attempts": "1",
        }
        arguments = [word for pair in options.items() for word in pair]
        return await asyncio.to_thread(_status, [*arguments, *more], check)

    @property
    def card(self) -> Path:
        return self.folder / "tiny-new" / "README.md"

    def answers(self, whose: str) -> list[str]:
        """The lines of a journal, its head left out."""
        return (self.folder / "out" / f"{whose}.jsonl").read_text().splitlines()[1:]


def _status(arguments: list[str], check: Callable[[Served, Path], Awaitable[list[str]]]) -> int:
    try:
        main(arguments, engine_check=check)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@asynccontextmanager
async def rig(folder: Path, **candidate: object) -> AsyncGenerator[Rig]:
    """A candidate like the incumbent, but for what is given."""
    record = write_candidate(folder / "tiny-new")
    write_rows(folder / "rows.parquet")
    served = ServedModel(**{"record": record, **candidate})  # pyright: ignore[reportArgumentType]
    async with serve(served) as mine, serve(ServedModel()) as theirs:
        yield Rig(folder, mine, theirs)
