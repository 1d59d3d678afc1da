"""Describes the served model's chat template by rendering it, so that no request is needed to find its roles.

Engines render as the library ``transformers`` does: by jinja2 in its sandbox, with ``raise_exception``,
``strftime_now`` and ``tojson``. Source: https://huggingface.co/docs/transformers/chat_templating.
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn, cast

from huggingface_hub import try_to_load_from_cache
from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from inference.checkpoint import config_of
from inference.engines import EnginePlan
from memloop.templates import ChatTemplate, described
from memloop.wire.chat import Json

_OWN_FILE: Final = "chat_template.jinja"
_IN_JSON: Final = ("chat_template.json", "tokenizer_config.json")
_WITH_TOOLS: Final = "tool_use"
_MARKS_OF_TRAINING: Final = re.compile(r"\{%-?\s*(?:end)?generation\s*-?%\}")
"""Tags of transformers alone, around what a training's loss covers; they render nothing."""
_PLAIN: Final[Json] = {"role": "user", "content": "alpha"}
_DESCRIBE_S: Final = 5.0
log = logging.getLogger(__name__)


async def describe_template(plan: EnginePlan) -> ChatTemplate | None:
    """Return the roles that the model's template takes; None where no template is found, or it cannot be rendered."""
    try:
        async with asyncio.timeout(_DESCRIBE_S):
            found = await asyncio.to_thread(_described, plan)
    except (OSError, ValueError, TemplateError, TimeoutError) as error:
        log.warning("the model's chat template is not described: %s", error)
        return None
    if found is not None:
        log.info("the model's chat template: %s", found)
    return found


def _described(plan: EnginePlan) -> ChatTemplate | None:
    named = _named_templates(plan)
    if not named:
        return None
    tokens = _tokens(plan)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    known: dict[str, object] = {"raise_exception": _raise, "strftime_now": datetime.now(UTC).strftime}
    compiled = {
        name: environment.from_string(_MARKS_OF_TRAINING.sub("", text), globals=known) for name, text in named.items()
    }
    plain = compiled.get("default") or next(iter(compiled.values()))

    def render(messages: list[Json], tools: list[Json] | None) -> str:
        template = compiled.get(_WITH_TOOLS, plain) if tools else plain
        return template.render(messages=messages, tools=tools, documents=None, add_generation_prompt=True, **tokens)

    if "alpha" not in render([_PLAIN], None):
        raise ValueError("it does not show the user's message")
    return described(render)


def _named_templates(plan: EnginePlan) -> dict[str, str]:
    """Return the templates by name; most models have one, ``default``."""
    if plan.chat_template:
        return {"default": Path(plan.chat_template).read_text("utf-8")}
    if (own := _file(plan, _OWN_FILE)) is not None:
        return {"default": own.read_text("utf-8")}
    for fields in _json_files(plan):
        given = fields.get("chat_template")
        if isinstance(given, str):
            return {"default": given}
        if isinstance(given, list):
            rows = [cast(Mapping[str, object], row) for row in given if isinstance(row, dict)]
            return {str(row.get("name")): str(row.get("template")) for row in rows}
    return {}


def _tokens(plan: EnginePlan) -> dict[str, str]:
    """Return the special tokens that a template may write by name, such as ``bos_token``."""
    found: dict[str, str] = {"bos_token": "", "eos_token": ""}
    for fields in _json_files(plan):
        for name, token in fields.items():
            text = token.get("content") if isinstance(token, dict) else token
            if name.endswith("_token") and isinstance(text, str):
                found[name] = text
    return found


def _json_files(plan: EnginePlan) -> Iterator[Json]:
    for path in filter(None, (_file(plan, name) for name in _IN_JSON)):
        yield config_of(path.parent, path.name)


def _file(plan: EnginePlan, name: str) -> Path | None:
    found = str(Path(plan.model) / name) if plan.local else try_to_load_from_cache(plan.model, name, plan.revision)
    return Path(found) if isinstance(found, str) and Path(found).is_file() else None


def _tojson(value: object, indent: int | None = None, **_: object) -> str:
    """Format as transformers does: in the order of the keys, without HTML's escapes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> NoReturn:
    raise TemplateError(message)
