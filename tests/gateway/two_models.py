"""A models file of a writer and a reader on two strict engines, each with a key and prompts of its own."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gateway.worker import working
from tests.fakes import strict_shapes as shape
from tests.fakes.job_store import store_server
from tests.fakes.ports import free_port
from tests.fakes.strict_endpoint import StrictEndpoint, strict_endpoint
from tests.fakes.strict_shapes import Body, Refused
from tests.fakes.strict_specs import SPECS, Rule, Spec
from tests.fakes.word_tokenizer import word_tokenizer
from tests.gateway.rig import settings_for
from tests.gateway.running import Gateway, running_gateway

WRITING = "Keep the logbook of this talk."
READING = "Study this passage of the book."
JUDGING = "Weigh whether these notes suffice."
DOCUMENT = "Unbelievable circumnavigations notwithstanding counterrevolutionaries " * 50
"""200 words: 200 tokens of the reader's tokenizer, and about 900 by the estimate."""
_SMALL = "[budget]\nquestion_tokens = 256\nchunk_tokens = 512\nmemory_tokens = 512\n"
_PROFILES = {
    "writing": ('[prompts.memory]\nsystem = "text.txt"', WRITING),
    "reading": (_SMALL + '[prompts.read]\ntemplate = "text.txt"', READING + "\n{problem}\n{memory}\n{section}"),
    "judging": ('[prompts.judge]\ntemplate = "text.txt"', JUDGING + "\n{question}\n{memory}\n{query_history}"),
}
_FILE = """
[roles]
writer = "w"
reader = "r"
chat = "talker"
{roles}

[models.w]
engine_url = "{writer}"
api_key_env = "KEY_OF_WRITER"
{writers_profile}

[models.r]
engine_url = "{reader}"
api_key_file = "key"
{readers_profile}
owned_by = "us"
created = 1767225600

[models.talker]
engine_url = "{reader}"
engine_model = "r"
api_key_file = "key"

[models.j]
engine_url = "{writer}"
engine_model = "w"
api_key_env = "KEY_OF_WRITER"
profile = "judging"
"""
_PARTS = {
    "writer": 'profile = "writing"',
    "reader": 'profile = "reading"\ntokenizer = "tokenizer.json"\nwindow_tokens = 4096',
}
ENVIRONMENT = {"KEY_OF_WRITER": "kw"}
"""What the file's tables name of the environment."""


@dataclass(frozen=True)
class Engines:
    """The engines of both models, and the folder of the models file."""

    writer: StrictEndpoint
    reader: StrictEndpoint
    folder: Path

    def file(self, *roles: str, down: Collection[str] = (), launchers: Mapping[str, int] | None = None) -> Path:
        """A models file with these further lines about roles; nothing listens where the engines ``down`` should be.

        A model with a port in ``launchers`` has its profile and tokenizer from a launcher there.
        """
        urls = {"writer": self.writer.url, "reader": self.reader.url}
        urls |= {name: f"http://127.0.0.1:{free_port()}/v1" for name in down}
        path = self.folder / "models.toml"
        parts = {f"{name}s_profile": text for name, text in _PARTS.items()}
        parts |= {
            f"{name}s_profile": f'inference_url = "http://127.0.0.1:{port}"' for name, port in (launchers or {}).items()
        }
        path.write_text(_FILE.format(roles="\n".join(roles), **urls, **parts))
        return path


@dataclass(frozen=True)
class TwoModels:
    """A gateway and a worker in this process, on both models."""

    gateway: Gateway
    engines: Engines


def texts_of(body: Body) -> str:
    """All that the messages of a request say."""
    return "\n".join(str(message["content"]) for message in body["messages"])


@asynccontextmanager
async def two_engines(folder: Path) -> AsyncGenerator[Engines]:
    """Both engines, and the parts that the models file names."""
    for name, (override, text) in _PROFILES.items():
        _write(folder / name / "manifest.toml", f'extends = "default"\nname = "{name}"\nversion = "1"\n{override}\n')
        _write(folder / name / "text.txt", text)
    _write(folder / "key", "kr\n")
    _write(folder / "tokenizer.json", word_tokenizer())
    async with strict_endpoint(_strict("w", "kw")) as writer, strict_endpoint(_strict("r", "kr")) as reader:
        yield Engines(writer, reader, folder)


@asynccontextmanager
async def two_models(
    redis_url: str,
    folder: Path,
    *roles: str,
    down: Collection[str] = (),
    launchers: Mapping[str, int] | None = None,
    **changes: object,
) -> AsyncGenerator[TwoModels]:
    """Everything in this process; ``KEY_OF_WRITER`` must be set. ``changes`` are settings."""
    async with AsyncExitStack() as stack:
        engines = await stack.enter_async_context(two_engines(folder))
        store = await stack.enter_async_context(store_server())
        given = {
            "models": engines.file(*roles, down=down, launchers=launchers),
            "model": None,
            "store_url": store.url,
            **changes,
        }
        settings = settings_for(redis_url, **given)
        gateway = await stack.enter_async_context(running_gateway(settings))
        await stack.enter_async_context(working(gateway.work, settings))
        yield TwoModels(gateway, engines)


def _strict(model: str, key: str) -> Spec:
    vllm = next(spec for spec in SPECS if spec.name == "vllm")
    headers = {"Authorization": f"Bearer {key}"}
    return replace(vllm, name=model, model=model, headers=headers, rules=(_only(model),))


def _only(model: str) -> Rule:
    def rule(body: Body) -> Refused | None:
        known = body.get("model") == model
        return None if known else shape.openai(404, f"The model `{body.get('model')}` does not exist.")

    return rule


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
