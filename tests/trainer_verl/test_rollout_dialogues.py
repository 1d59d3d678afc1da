"""What the trainer's rollout shows the policy, for one scripted dialogue of each loop: see ``tests.dialogues``."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from transformers import AutoTokenizer
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap
from verl.utils.dataset.rl_dataset import get_dataset_class
from verl.workers.rollout.replica import TokenOutput

from memloop.chunking import TokenizerSplitter
from memloop.profiles import load_profile
from tests.dialogues.scripted import ANSWER, FOLDER, MEMAGENT, MEMREADER, MEMREREAD, TINY, Dialogue
from tests.trainer_verl.rows import row_of
from trainer.chat_template import ChatTemplate, sent_messages
from trainer.rollout.agents import FunctionAgent, LoopAgent, MemAgentLoop, MemReaderLoop, MemRereadLoop
from trainer.rollout.loop_rows import LoopRows
from trainer.rollout.recipe import load_recipe
from trainer.rollout.recording import Generated, PromptTooLong, RecordingModel
from trainer.rollout.sessions import LoopRunner
from trainer.rollout.settings import LoopSettings

RECIPE = Path("trainer/recipes/tiny-memagent-cpu.yaml")
TOKENIZER: Any = cast(Any, AutoTokenizer).from_pretrained(TINY)
DIALOGUES = [(MEMAGENT, MemAgentLoop), (MEMREREAD, MemRereadLoop), (MEMREADER, MemReaderLoop)]
every_loop = pytest.mark.parametrize(("dialogue", "agent"), DIALOGUES, ids=lambda each: getattr(each, "loop", ""))


class ScriptedServers:
    """verl's client of its rollout servers, with replies from a script."""

    def __init__(self, replies: tuple[str, ...]) -> None:
        self.limits: list[int] = []
        self.calls: list[str | None] = []
        self._replies = iter(replies)

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any]) -> TokenOutput:
        del request_id, prompt_ids
        self.limits.append(sampling_params["max_tokens"])
        self.calls.append(sampling_params.get("call"))
        ids = [*TOKENIZER.encode(next(self._replies), add_special_tokens=False), TOKENIZER.eos_token_id]
        return TokenOutput(token_ids=ids, log_probs=[-0.5] * len(ids), extra_fields={"global_steps": 7})


class ScriptedTokens:
    """A TokenEngine with replies from a script."""

    def __init__(self, replies: tuple[str, ...]) -> None:
        self._replies = iter(replies)

    async def generate(self, prompt_ids: list[int], *, max_tokens: int) -> Generated:
        del prompt_ids, max_tokens
        ids = (*TOKENIZER.encode(next(self._replies), add_special_tokens=False), TOKENIZER.eos_token_id)
        return Generated(ids, (0.0,) * len(ids), truncated=False, version=0)


@every_loop
async def test_a_rollout_shows_the_policy_what_the_gateway_shows_the_engine(
    dialogue: Dialogue, agent: type[LoopAgent]
) -> None:
    profile, settings = load_profile("tiny"), LoopSettings(profile="tiny")
    runner = LoopRunner(profile, TokenizerSplitter((TINY / "tokenizer.json").read_bytes()), settings)
    model = RecordingModel(ScriptedTokens(dialogue.replies), ChatTemplate(TOKENIZER), max_prompt_tokens=1000)
    session = await runner.run(agent.loop_name, row_of(agent.loop_name), model)
    assert session.reward == 1.0
    dialogue.check([{"messages": sent_messages(turn.prompt), "tools": list(turn.prompt.tools)} for turn in model.turns])


@every_loop
async def test_an_agent_loop_gives_the_served_prompts_to_verl_token_by_token(
    dialogue: Dialogue, agent: type[LoopAgent]
) -> None:
    servers = ScriptedServers(dialogue.replies)
    outputs = await _outputs(agent, servers)
    golden = json.loads((FOLDER / f"{dialogue.loop}.json").read_text("utf-8"))
    assert [each.prompt_ids for each in outputs] == [_rendered(call) for call in golden]
    texts = [TOKENIZER.decode(each.response_ids, skip_special_tokens=True) for each in outputs]
    assert texts == list(dialogue.replies)


@every_loop
async def test_every_turn_is_a_row_with_the_sessions_reward_and_the_policys_step(
    dialogue: Dialogue, agent: type[LoopAgent]
) -> None:
    outputs = await _outputs(agent, ScriptedServers(dialogue.replies))
    assert {each.reward_score for each in outputs} == {1.0}
    assert {each.extra_fields["min_global_steps"] for each in outputs} == {7}
    assert all(set(each.response_mask) == {1} for each in outputs)
    assert all(len(each.response_logprobs or ()) == len(each.response_ids) for each in outputs)


async def test_an_agent_of_the_users_own_gives_its_conversations_to_verl() -> None:
    servers = ScriptedServers(
        ('<tool_call>{"name": "search", "arguments": {"words": "code"}}</tool_call>', r"\boxed{x}")
    )
    outputs = await _outputs(FunctionAgent, servers, "memloop.agent=examples.agents.tool_user:solve")
    replies = [TOKENIZER.decode(_sampled(each), skip_special_tokens=True) for each in outputs]
    assert "".join(replies) == r'<tool_call>{"name": "search", "arguments": {"words": "code"}}</tool_call>\boxed{x}'
    assert {each.reward_score for each in outputs} == {0.0}
    assert [each.extra_fields["final"] for each in outputs] == [False] * (len(outputs) - 1) + [True]
    assert all(len(each.response_logprobs or ()) == len(each.response_mask) for each in outputs)


async def test_a_call_that_earned_more_than_its_run_has_a_credit() -> None:
    agent = "memloop.agent=examples.agents.map_reduce:solve"
    outputs = await _outputs(FunctionAgent, ScriptedServers((ANSWER, r"\boxed{x}")), agent, context="short")
    assert [each.extra_fields["credit"] for each in outputs] == [0.5, -0.5]
    assert {each.reward_score for each in outputs} == {0.5}


def test_verl_reads_rows_by_our_data_set() -> None:
    assert get_dataset_class(load_recipe(RECIPE).config.data) is LoopRows


def _sampled(output: AgentLoopOutput) -> list[int]:
    return [token for token, mine in zip(output.response_ids, output.response_mask, strict=True) if mine]


async def test_a_prompt_longer_than_the_run_allows_is_an_error_and_not_cut() -> None:
    with pytest.raises(PromptTooLong, match=r"data\.max_prompt_length=100"):
        await _outputs(MemAgentLoop, ScriptedServers(MEMAGENT.replies), "data.max_prompt_length=100")


async def test_our_cpu_engine_gets_a_name_for_each_call_and_other_engines_none() -> None:
    ours, vllm = ScriptedServers(MEMAGENT.replies), ScriptedServers(MEMAGENT.replies)
    await _outputs(MemAgentLoop, ours)
    await _outputs(MemAgentLoop, vllm, "actor_rollout_ref.rollout.name=vllm")
    assert ours.calls == [f"u_0_{number}" for number in range(len(MEMAGENT.replies))]
    assert vllm.calls == [None] * len(MEMAGENT.replies)


async def _outputs(
    agent: type[LoopAgent | FunctionAgent], servers: ScriptedServers, *overrides: str, **columns: str
) -> list[AgentLoopOutput]:
    config = load_recipe(RECIPE, overrides).config
    made = agent(
        trainer_config=DictConfigWrap(config),
        server_manager=cast(Any, servers),
        tokenizer=TOKENIZER,
        processor=cast(Any, None),
        dataset_cls=cast(Any, None),
        data_config=DictConfigWrap(config.data),
        hf_model_type="qwen3",
    )
    loop = agent.loop_name if issubclass(agent, LoopAgent) else "memagent"
    row = {**row_of(loop), "session_id": 0, "uid": "u", **columns}
    return await made.run({"temperature": 1.0, "top_p": 1.0, "top_k": -1}, **row)


def _rendered(call: dict[str, Any]) -> list[int]:
    """A golden call through the checkpoint's own template, as an engine renders it."""
    thinking = load_profile("tiny").prompts["memory"].thinking if call["tools"] else False
    text = TOKENIZER.apply_chat_template(
        call["messages"],
        tools=call["tools"] or None,
        enable_thinking=thinking,
        add_generation_prompt=True,
        tokenize=False,
    )
    return TOKENIZER.encode(text, add_special_tokens=False)
