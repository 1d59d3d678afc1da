"""The launcher describes the chat template of the model that it serves, from wherever the model keeps it."""

import json
from pathlib import Path

import pytest

from inference.engines import EnginePlan
from inference.template import describe_template
from memloop.templates import ANY_ROLES, ChatTemplate

CHATML = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""SmolLM2's and many others': every role, and no tools."""
WITH_TOOLS = """{{ bos_token }}{% if tools %}{{ tools | tojson(indent=2) }}{{ strftime_now('%Y') }}{% endif %}
{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function | tojson }}
{% endfor %}{% if loop.index > 99 %}{% break %}{% endif %}{% generation %}{% endgeneration %}{% endfor %}"""
IN_TURNS = """{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
[{{ m.role }}]{{ m.content }}{% endfor %}"""
NO_TOOLS = ChatTemplate(tools=False)
TURNS = ChatTemplate(system=False, developer=False, tools=False, alternates=True)


def plan(folder: Path, **changes: str) -> EnginePlan:
    served = {"engine": "vllm", "python": "python", "served_name": "m", "host": "127.0.0.1", "profile": "default"}
    return EnginePlan(**{**served, "port": 7803, "model": str(folder), **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("template", "found"),
    [(CHATML, NO_TOOLS), (WITH_TOOLS, ANY_ROLES), (IN_TURNS, TURNS)],
    ids=["ChatML", "all", "turns"],
)
@pytest.mark.parametrize("file", ["chat_template.jinja", "chat_template.json", "tokenizer_config.json", "named"])
async def test_a_template_is_found_and_described(tmp_path: Path, template: str, found: ChatTemplate, file: str) -> None:
    if file == "named":
        listed = [{"name": "tool_use", "template": template}, {"name": "default", "template": template}]
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": listed, "bos_token": "<s>"}))
    elif file.endswith(".json"):
        (tmp_path / file).write_text(json.dumps({"chat_template": template, "bos_token": {"content": "<s>"}}))
    else:
        (tmp_path / file).write_text(template)
    assert await describe_template(plan(tmp_path)) == found


async def test_the_settings_template_comes_before_the_models_own(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(WITH_TOOLS)
    (tmp_path / "mine.jinja").write_text(IN_TURNS)
    assert await describe_template(plan(tmp_path, chat_template=str(tmp_path / "mine.jinja"))) == TURNS


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"tokenizer_config.json": "{}"},
        {"tokenizer_config.json": "not JSON"},
        {"chat_template.jinja": "{% for"},
        {"chat_template.jinja": "{{ raise_exception('no') }}"},
        {"chat_template.jinja": "always the same"},
        {"chat_template.jinja": "{{ ().__class__.__mro__[1].__subclasses__() }}"},
    ],
    ids=["no file", "no template", "no JSON", "no Jinja", "raises", "shows nothing", "reaches out of the sandbox"],
)
async def test_a_template_that_cannot_be_rendered_is_not_described(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert await describe_template(plan(tmp_path)) is None


@pytest.mark.parametrize("model", ["memloop-tiny", "memloop-tiny-writer"])
async def test_the_models_that_we_ship_take_tools(model: str) -> None:
    folder = Path(__file__).parents[2] / "services/inference/models" / model
    found = await describe_template(plan(folder))
    assert found is not None
    assert found.tools
