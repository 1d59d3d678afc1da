"""Our engine over OpenVINO GenAI as a process, with the weights of memloop-small, asked by OpenAI's own client."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jinja2
import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam
from tokenizers import Tokenizer

from tests.fakes.ports import free_port
from tests.fakes.processes import PATIENCE_S, clean_environment, wait_for

FOLDER = Path("services/inference/models/memloop-small")
KEY = "the-engines-key"
FRANCE: list[ChatCompletionMessageParam] = [{"role": "user", "content": "What is the capital of France?"}]


class Engine:
    """The running server. ``first`` are the replies to eight chats that came at once, before any other."""

    def __init__(self) -> None:
        self.port = free_port()
        options = {"--model": FOLDER, "--served-model-name": "small", "--port": self.port, "--max-model-len": 2048}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "inference.openvino.server",
                *(str(each) for pair in options.items() for each in pair),
            ],
            env=clean_environment(MEMLOOP_ENGINE_API_KEY=KEY),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.client = openai.OpenAI(
            base_url=f"http://127.0.0.1:{self.port}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE_S
        )
        self.first: list[str] = []

    def answers(self) -> bool:
        assert self.process.poll() is None, self.process.communicate()
        try:
            return [model.id for model in self.client.models.list()] == ["small"]
        except openai.APIConnectionError:
            return False

    def ask(self, messages: list[ChatCompletionMessageParam], **options: object) -> str:
        answer = self.client.chat.completions.create(
            model="small", messages=messages, temperature=0, max_tokens=48, extra_body=options
        )
        return answer.choices[0].message.content or ""

    def gauge(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=PATIENCE_S) as answer:
            found = re.search(rf"^openvino:{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        assert found is not None, name
        return float(found[1])


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    started = Engine()
    wait_for(started.answers, "the engine")
    with ThreadPoolExecutor(8) as at_once:
        started.first = list(at_once.map(started.ask, [FRANCE] * 8))
    yield started
    started.process.terminate()
    assert started.process.wait(PATIENCE_S) in {0, -signal.SIGTERM}  # uvicorn ends by the signal that it was sent


def test_the_first_chats_after_a_start_may_come_at_once(engine: Engine) -> None:
    assert [("Paris" in reply) for reply in engine.first] == [True] * 8


def test_it_answers_a_chat_and_counts_its_tokens(engine: Engine) -> None:
    answer = engine.client.chat.completions.create(model="small", messages=FRANCE, temperature=0, max_tokens=48)
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(rendered("What is the capital of France?"))
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_tells_what_the_whole_answer_does(engine: Engine) -> None:
    stream = engine.client.chat.completions.create(
        model="small",
        messages=FRANCE,
        temperature=0,
        max_tokens=48,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == engine.ask(FRANCE)
    assert len(texts) > 5
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None


def test_a_reply_ends_where_it_is_told_to(engine: Engine) -> None:
    whole = engine.ask(FRANCE)
    assert engine.ask(FRANCE, stop=["Paris"]) == whole[: whole.index("Paris")]
    cut = engine.client.chat.completions.create(model="small", messages=FRANCE, temperature=0, max_tokens=3)
    assert cut.choices[0].finish_reason == "length"
    assert whole.startswith(cut.choices[0].message.content or "?")


def test_a_seed_draws_the_same_replies_again(engine: Engine) -> None:
    def drawn(seed: int) -> list[str | None]:
        answer = engine.client.chat.completions.create(
            model="small",
            messages=[{"role": "user", "content": "Name a colour."}],
            n=3,
            seed=seed,
            temperature=1.5,
            max_tokens=12,
        )
        return [choice.message.content for choice in answer.choices]

    drawn(7)  # caches the prompt: a cached prompt and a computed one differ in their last bits
    assert drawn(7) == drawn(7)
    assert len(set(drawn(7))) > 1


def test_a_reply_keeps_to_a_schema(engine: Engine) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    told = engine.ask(
        [{"role": "user", "content": "Somebody's name and age, please."}],
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
    )
    assert set(json.loads(told)) == {"name", "age"}


def test_chats_at_once_get_their_own_answers(engine: Engine) -> None:
    def capital(country: str) -> str:
        return engine.ask([{"role": "user", "content": f"What is the capital of {country}?"}])

    countries = ["France", "Italy", "Japan", "Egypt", "Spain", "Russia"]
    alone = [capital(country) for country in countries]
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(capital, countries))
    assert [country in told for country, told in zip(countries, together, strict=True)] == [
        country in told for country, told in zip(countries, alone, strict=True)
    ]
    assert len(set(together)) == len(countries)


def test_a_client_that_leaves_ends_its_generation(engine: Engine) -> None:
    stream = engine.client.chat.completions.create(
        model="small", messages=[{"role": "user", "content": "Count to a thousand."}], stream=True, max_tokens=1500
    )
    next(iter(stream))
    stream.close()
    wait_for(lambda: engine.gauge("requests_running") + engine.gauge("requests_waiting") == 0, "the end")
    assert engine.gauge("generated_tokens_total") > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_tokens": 4000}, "maximum context length is 2048 tokens"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "leave out tools"),
        ({"logprobs": True}, "no logprobs"),
        ({"temperature": 9}, "temperature"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "text alone"),
        ({"messages": []}, "messages"),
    ],
    ids=["window", "tools", "logprobs", "temperature", "picture", "nothing"],
)
def test_what_it_cannot_do_is_refused_in_a_sentence(engine: Engine, options: dict[str, object], told: str) -> None:
    with pytest.raises(openai.APIStatusError, match=told) as refused:
        engine.client.chat.completions.create(model="small", messages=FRANCE, extra_body=options)
    assert refused.value.status_code in {400, 422}


def test_another_model_or_key_is_refused(engine: Engine) -> None:
    with pytest.raises(openai.NotFoundError, match="serves small"):
        engine.client.chat.completions.create(model="large", messages=FRANCE)
    with pytest.raises(openai.AuthenticationError):
        engine.client.with_options(api_key="another").models.list()


def test_a_prompt_is_written_by_the_models_own_template(engine: Engine) -> None:
    conversation: list[ChatCompletionMessageParam] = [
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": "¿Qué tal? 12,5 % – <b>ok</b>\n\n- a\n- b  "},
        {"role": "assistant", "content": "Fine."},
        {"role": "user", "content": "Why?"},
    ]
    answer = engine.client.chat.completions.create(model="small", messages=conversation, max_tokens=1)
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == len(rendered(*conversation))


def rendered(*messages: ChatCompletionMessageParam | str) -> list[int]:
    """The tokens of a chat by the checkpoint's own files, without the engine."""
    template = json.loads((FOLDER / "tokenizer_config.json").read_bytes())["chat_template"]
    told = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages]
    text = jinja2.Environment().from_string(template).render(messages=told, add_generation_prompt=True)
    return Tokenizer.from_file(str(FOLDER / "tokenizer.json")).encode(text, add_special_tokens=False).ids
