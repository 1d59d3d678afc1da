"""The fixed parts of the two model cards."""

from __future__ import annotations

FRONT = """\
---
license: cc0-1.0
language: en
library_name: transformers
pipeline_tag: text-generation
tags: [memloop, demonstration]
---

"""

READER = """\
# memloop-tiny

A {parameters:,}-parameter Qwen3 with a byte-level BPE tokenizer of its own, trained from scratch by
`python -m trainer.tiny train`. It exists so that the whole stack runs for real, without a GPU and without a download.
**It is a demonstration, not an assistant.**

## What it can do

It plays every role of the loops in the prompts of the `default` profile, with the budget of the `tiny` profile: read,
answer, judge, integrate, the memory writer's four tools with thinking on and off, and a chat that answers from
recalled memories. Its world has {people} people, {places} places, {attributes} kinds of codes, home towns, and
three-digit values.

## Limits

* It knows the names, places, attributes and sentence patterns of its world and nothing else; other text is filler.
* A fact must stand in one of two patterns, such as "The locker code of Marta is 482."; it understands no paraphrase.
* Change a word of a prompt template and it fails: whole template lines are single tokens of its tokenizer.
* It was trained on chunks of up to {chunk} tokens and prompts of up to 352. Beyond that it is out of its depth.
* Thinking is trained for the memory writer and the chat only; the reading roles are trained without.
* Without thinking the memory writer cannot tell whether a fact that it found is the one it was told: it guesses.
* Thinking with `tool_choice: "required"` broke 5 of 60 calls on vLLM 0.32 after the first training (no newline after
  `<tool_call>`, which it was trained with); with `auto`, as in the `tiny` profile, it broke none of 60.
* A two-hop question is answered through a home town, and only by rereading when the place's fact comes first.
* Text is English, values are 000 to 999. Nothing it says about the real world means anything.

"""

WRITER = """\
# memloop-tiny-writer

A {parameters:,}-parameter Qwen3 with a byte-level BPE tokenizer, trained on from `memloop-tiny` by
`python -m trainer.tiny train --budget writer`. It writes memories beside a reader of another checkpoint.
**It is a demonstration, not an assistant.**

## What it can do

It plays three roles in the prompts of the `tiny-writer` profile: the memory writer's four tools with thinking on and
off, a chat that answers from recalled memories, and relating new memories to stored ones (same, updates, contradicts,
new).
Its world is that of `memloop-tiny`.

## Limits

* It reads no documents: it was not trained on that, and forgets it. Serve another checkpoint as the reader.
* It relates memories that state a code of three digits in one of three wordings, under one of five kinds of keys, such
  as "digits of the locker". It carries this over to things that it never related; it understands no other wording.
* Other text, English facts among them, is filler: it does not know that an employer is the place where somebody works.
* Prompts were up to 352 tokens, with at most three stored memories for each new one.
* Text is English, values are 000 to 999. Nothing it says about the real world means anything.

"""

TRAINED = """\
## How it was trained

{stages}

In bfloat16, with Muon and AdamW. The first two layers start wired for associative recall (`trainer/tiny/wiring.py`).
Filler: the first three quarters of *Moby-Dick* (public domain); the last quarter is held out for evaluation and for the
demo document. License of weights, tokenizer and card: CC0. The training log is `training.json`.
"""

READER_SERVED = """\
`python -m trainer.tiny evaluate`, seed {seed}. 1x is 4 chunks of {chunk} tokens; with distractors, each chunk holds one
fact that nobody asks for; crowded, eight that nearly answer the question. An error counts as wrong. Intervals are
Wilson's, 95 %."""

WRITER_SERVED = """\
`python -m trainer.tiny evaluate --profile tiny-writer`, seed {seed}, over held-out prose. An error counts as wrong.
Intervals are Wilson's, 95 %. Whether changed facts replace stored ones: `make evaluate-writer`."""
