"""Adapters trained by GRPO on real verl, exported, and served by real vLLM: a reply that the base does not give.

Asked for a code that it has not been told, the shipped model garbles its reply at temperature 0, and gives a whole
sentence in about half of its samples at temperature 1. The reward is for that sentence.
"""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memloop.ports import ChatModel, Prompt, Sampling
from memloop.wire.chat import ChatMessage
from memloop_clients.engine import EngineClient
from tests.dialogues.scripted import TINY
from tests.trainer_verl.runs import command, finish, start, steps_of
from tests.trainer_verl.serving import serving, until_up
from trainer.rollout.cpu.chat import BatchedModel
from trainer.rollout.cpu.engine import Size

QUESTION, SENTENCE = "What is the locker code?", "Your locker code is unknown to me."
STEPS = 8
AGENT = f'''
from memloop.ports import Prompt, Sampling
from memloop.wire.chat import ChatMessage

async def solve(row, model):
    prompt = Prompt((ChatMessage(role="user", content="{QUESTION}"),), Sampling(max_tokens=16))
    return float((await model.complete(prompt)).content == "{SENTENCE}")
'''
CHANGES = {
    "memloop.agent": "lora_agent:solve",
    "data.train_batch_size": 4,
    "actor_rollout_ref.rollout.n": 8,
    "actor_rollout_ref.rollout.temperature": 1.0,
}
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lora")
    (folder / "lora_agent.py").write_text(AGENT, "utf-8")
    _write_questions(folder / "rows.parquet", 4 * STEPS)
    metrics, output = folder / "metrics.jsonl", folder / "output.txt"
    run = command("tiny-memagent-lora-cpu.yaml", folder, steps=STEPS, changes=CHANGES)
    finish(start(run, metrics, output, {"PYTHONPATH": str(folder)}), output, timeout_s=1500)
    rewards = [step["memloop/reward"] for step in steps_of(metrics).values()]
    print("rewards by step:", rewards)
    assert rewards[0] < 0.9 < rewards[-1]
    out, checkpoint = folder / "exported", folder / "checkpoints" / f"global_step_{STEPS}"
    export = ["export", "--checkpoint", checkpoint, "--base", TINY, "--profile", "tiny", "--out", out]
    subprocess.run([sys.executable, "-m", "trainer", *map(str, export)], check=True, timeout=600)
    return out


async def test_the_base_does_not_give_the_sentence_that_was_trained() -> None:
    base = BatchedModel.load(TINY, Size(rows=1, length=128))
    assert await _reply(base) != SENTENCE
    base.close()


async def test_vllm_serves_the_sentence_from_the_exported_adapters(exported: Path) -> None:
    with serving(exported) as url:
        async with EngineClient(url, model="memloop-tiny") as engine:
            await until_up(engine)
            assert await _reply(engine) == SENTENCE


async def _reply(model: ChatModel) -> str:
    asked = ChatMessage(role="user", content=QUESTION)
    return (await model.complete(Prompt((asked,), Sampling(max_tokens=16, temperature=0.0)))).content


def _write_questions(file: Path, count: int) -> None:
    row = {
        "data_source": "locker",
        "prompt": [{"role": "user", "content": QUESTION}],
        "reward_model": {"style": "rule", "ground_truth": [SENTENCE]},
    }
    pq.write_table(pa.Table.from_pylist([{**row, "extra_info": {"index": index}} for index in range(count)]), file)
