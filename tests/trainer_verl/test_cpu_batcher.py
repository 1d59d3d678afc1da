"""The CPU rollout's batching: it must generate what the model alone would, whoever else is in the batch."""

import asyncio
import random
from typing import Any, cast

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.dialogues.scripted import TINY
from trainer.rollout.cpu.batcher import Batcher, Request
from trainer.rollout.cpu.engine import CpuEngine, Size
from trainer.rollout.cpu.sampling import Decoding, draw

GREEDY = Decoding(temperature=0.0)
MODEL: Any = cast(Any, AutoModelForCausalLM).from_pretrained(TINY, dtype=torch.float32).eval()
TOKENIZER: Any = cast(Any, AutoTokenizer).from_pretrained(TINY)
ENDS = frozenset(MODEL.generation_config.eos_token_id)
TEXTS = (
    "The locker code of Marta is 417. The locker code of Marta is",
    "Call me Ishmael. Some years ago—never mind how long precisely—having little or no money",
    "The dock code of Lima is 9",
    "The",
)


def prompts() -> list[list[int]]:
    return [TOKENIZER.encode(text, add_special_tokens=False) for text in TEXTS]


def run(batcher: Batcher, requests: list[Request]) -> None:
    for request in requests:
        batcher.submit(request)
    while not batcher.idle:
        batcher.step()


def test_greedy_replies_are_those_of_the_model_alone_with_fewer_rows_than_requests() -> None:
    requests = [Request(prompt, 24, GREEDY) for prompt in prompts()]
    run(Batcher(MODEL, ends=ENDS, rows=3, length=96, seed=0), requests)
    for request in requests:
        ids = torch.tensor([request.prompt])
        alone = MODEL.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, do_sample=False)
        assert alone[0, len(request.prompt) :].tolist() == request.made


def test_log_probabilities_are_those_of_the_distribution_that_was_drawn_from() -> None:
    requests = [Request(prompt, 16, Decoding(temperature=2.0)) for prompt in prompts() for _ in range(2)]
    run(Batcher(MODEL, ends=ENDS, rows=5, length=96, seed=3), requests)
    for request in requests:
        with torch.inference_mode():
            logits = MODEL(torch.tensor([request.prompt + request.made])).logits[0] / 2.0
        of_made = logits[len(request.prompt) - 1 : -1].log_softmax(-1)
        expected = of_made.gather(1, torch.tensor(request.made)[:, None])[:, 0]
        assert torch.allclose(expected, torch.tensor(request.log_probs), atol=1e-4)


@pytest.mark.parametrize("right", [0, 1, 7, 24])
def test_a_draft_that_is_right_for_some_tokens_does_not_change_the_reply(right: int) -> None:
    plain = [Request(prompt, 24, GREEDY) for prompt in prompts()]
    run(Batcher(MODEL, ends=ENDS, rows=4, length=96, seed=0), plain)
    drafted = [Request(each.prompt, 24, GREEDY, draft=[*each.made[:right], 7, 7]) for each in plain]
    run(Batcher(MODEL, ends=ENDS, rows=3, length=96, seed=0), drafted)
    assert [each.made for each in drafted] == [each.made for each in plain]


def test_a_right_draft_takes_one_step_instead_of_one_for_each_token() -> None:
    batcher = Batcher(MODEL, ends=ENDS, rows=1, length=96, seed=0)
    run(batcher, [plain := Request(prompts()[1], 24, GREEDY)])
    batcher.submit(Request(plain.prompt, 24, GREEDY, draft=plain.made))
    assert [each.made for each in batcher.step()] == [plain.made]


def test_drafted_tokens_keep_the_log_probabilities_of_what_was_drawn() -> None:
    requests = [Request(prompt, 16, Decoding(temperature=2.0), draft=[5, 6, 7]) for prompt in prompts()]
    run(Batcher(MODEL, ends=ENDS, rows=5, length=96, seed=3), requests)
    for request in requests:
        with torch.inference_mode():
            logits = MODEL(torch.tensor([request.prompt + request.made])).logits[0] / 2.0
        of_made = logits[len(request.prompt) - 1 : -1].log_softmax(-1)
        expected = of_made.gather(1, torch.tensor(request.made)[:, None])[:, 0]
        assert torch.allclose(expected, torch.tensor(request.log_probs), atol=1e-4)


def test_rows_of_one_prompt_draw_differently() -> None:
    requests = [Request(prompts()[1], 12, Decoding(temperature=2.0)) for _ in range(6)]
    run(Batcher(MODEL, ends=ENDS, rows=6, length=96, seed=0), requests)
    assert len({tuple(request.made) for request in requests}) > 1


async def test_a_seed_gives_the_same_reply_whichever_other_requests_run() -> None:
    engine = CpuEngine(TINY, Size(rows=8, length=96), seed=0)
    warm = Decoding(temperature=2.0)

    async def reply(seed: str) -> list[int]:
        return (await engine.generate(prompts()[1], max_tokens=12, decoding=warm, seed=seed)).made

    crowd = await asyncio.gather(*(reply(f"call {number}") for number in range(12)))
    alone = [await reply(f"call {number}") for number in reversed(range(12))][::-1]
    engine.close()
    assert crowd == alone
    assert len({tuple(made) for made in crowd}) > 6


def test_tokens_are_drawn_as_often_as_their_probabilities() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log().repeat(4000, 1)
    dice = random.Random(0)
    tokens, _ = draw(logits, [Decoding()] * 4000, [dice] * 4000)
    for token, share in enumerate((0.5, 0.3, 0.15, 0.05)):
        assert tokens.count(token) / 4000 == pytest.approx(share, abs=0.03)


def test_a_request_that_does_not_fit_a_row_is_refused() -> None:
    with pytest.raises(ValueError, match="do not fit 32"):
        Batcher(MODEL, ends=ENDS, rows=1, length=32, seed=0).submit(Request([1] * 30, 3, GREEDY))


@pytest.mark.parametrize(("decoding", "possible"), [(Decoding(top_k=2), {0, 3}), (Decoding(top_p=0.6), {0, 3})])
def test_restricted_decoding_draws_among_the_likeliest(decoding: Decoding, possible: set[int]) -> None:
    logits = torch.tensor([[3.0, 0.0, 1.0, 2.9]]).repeat(200, 1)
    tokens, _ = draw(logits, [decoding] * 200, [random.Random(0)] * 200)
    assert set(tokens) == possible


async def test_new_weights_change_what_is_generated_and_wrong_ones_are_refused() -> None:
    engine = CpuEngine(TINY, Size(rows=2, length=96), seed=0)
    before = await engine.generate(prompts()[0], max_tokens=8, decoding=GREEDY)
    weights = {name: torch.zeros_like(weight) for name, weight in MODEL.named_parameters()}
    with pytest.raises(KeyError, match=r"missing \['lm_head.weight', 'model.embed_tokens.weight'"):
        await engine.load({})
    await engine.load(weights)
    after = await engine.generate(prompts()[0], max_tokens=8, decoding=GREEDY)
    engine.close()
    assert before.made != after.made


async def test_pending_replies_are_cancelled_when_the_engine_closes() -> None:
    engine = CpuEngine(TINY, Size(rows=1, length=2048), seed=0)
    waiting = asyncio.create_task(engine.generate([5] * 8, max_tokens=2000, decoding=Decoding(temperature=50.0)))
    await asyncio.sleep(0.05)
    engine.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
