"""Runs the data commands: from the parsed options to the facts of the last line."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter
from contextlib import aclosing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter

from memloop.chunking import EstimatingSplitter, TokenizerSplitter
from memloop.profiles import load_profile
from memloop.wire.chat import Json
from trainer.data.bench import bench_synthesis
from trainer.data.card import write_conversations_card
from trainer.data.dialogues.formats import conversations
from trainer.data.encyclopedia import write_encyclopedia
from trainer.data.endpoint import models_of
from trainer.data.hotpot import questions
from trainer.data.journal import Journal
from trainer.data.long_questions import LongQuestions
from trainer.data.no_context import NoContextFilter, write_kept
from trainer.data.parquet import write_parquet
from trainer.data.production import Sorted, of_each
from trainer.data.progress import Progress
from trainer.data.ruler import TASKS, as_reading_rows, as_ruler_rows, ruler_items
from trainer.data.schemas import CONVERSATION, READING, WRITING
from trainer.data.synthesis import Size
from trainer.data.teacher import PaidReply, Teacher
from trainer.data.tiny_rows import Hardness, tiny_rows
from trainer.data.world import world_turns
from trainer.decisions import decided_by
from trainer.tiny.prose import Part, book

Facts = dict[str, object]


def synthesise(options: argparse.Namespace) -> Facts:
    """Make long documents around a file's questions."""
    splitter = TokenizerSplitter(options.tokenizer.read_bytes()) if options.tokenizer else EstimatingSplitter()
    wanted = LongQuestions(
        asked=options.questions,
        pools=tuple(options.pool or ()),
        size=Size(documents=options.documents, tokens=options.tokens, count=splitter.count),
        train=options.items,
        dev=options.dev,
        seed=options.seed,
        agent=options.agent,
        data_source=options.data_source,
        license=options.license,
    )
    made = wanted.make(options.out, options=options_of(options), progress=Progress())
    size = sum((options.out / f"{split}.parquet").stat().st_size for split in made)
    return {"rows": made, "documents": options.documents, "tokens": options.tokens, "mib": round(size / (1 << 20), 1)}


def encyclopedia(options: argparse.Namespace) -> Facts:
    """Make up questions."""
    write_encyclopedia(options.out, options.questions, seed=options.seed)
    return {"questions": options.questions, "out": str(options.out)}


def filter_questions(options: argparse.Namespace) -> Facts:
    """Keep the questions that no model answers without context."""
    return asyncio.run(_filtered(options))


async def _filtered(options: argparse.Namespace) -> Facts:
    journal_at = options.out.with_name(f"{options.out.name}.journal")
    async with models_of(options) as models:
        no_context = NoContextFilter(models, samples=options.samples, score=options.score, places=options.at_once)
        with no_context.open_journal(journal_at) as journal:
            resumed = len(journal.records)
            asked = Progress().over(questions(options.questions), total=None, what="questions")
            await no_context.judge(asked, journal)
            kept, dropped = write_kept(options.questions, journal, options.out)
            refused = sum(bool(verdict.refused) for verdict in journal.records)
    return {"kept": kept, "dropped": dropped, "refused": refused, "resumed_from": resumed, "out": str(options.out)}


def world(options: argparse.Namespace) -> Facts:
    """Make turns of the tiny world to imitate."""
    profile = load_profile(options.profile)
    made: dict[str, int] = {}
    wanted: tuple[tuple[str, Part, int], ...] = (("train", "train", options.rows), ("dev", "held_out", options.dev))
    for split, part, count in wanted:
        rows = islice(world_turns(profile, part=part, seed=options.seed), count)
        shown = Progress().over(rows, total=count, what=split)
        made[split] = write_parquet(shown, options.out / f"{split}.parquet", CONVERSATION)
    write_conversations_card(options.out, "Tiny world, turns", made, options_of(options), license_="cc0-1.0")
    return {"rows": made}


def tiny_world_rows(options: argparse.Namespace) -> Facts:
    """Make tasks of the tiny world: a training set, and a held-out set over other prose."""
    profile, rng = load_profile("tiny"), random.Random(options.seed)
    hardness = Hardness(options.chunks, options.distractors, options.near_misses)
    schema = WRITING if options.loop == "memreader" else READING
    wanted: tuple[tuple[Part, int], ...] = (("train", options.rows), ("held_out", options.held_out))
    made: dict[str, int] = {}
    for part, count in wanted:
        rows = tiny_rows(rng, options.loop, profile, book(part), hardness)
        made[part] = write_parquet(islice(rows, count), options.out / f"{options.loop}-{part}.parquet", schema)
    return {"rows": made}


def ruler(options: argparse.Namespace) -> Facts:
    """Make RULER's tasks: a JSONL file for each task and size, the same items as rows for RL, others to train on."""
    splitter = TokenizerSplitter(options.tokenizer.read_bytes()) if options.tokenizer else EstimatingSplitter()
    made: dict[str, int] = {}
    for task in options.task or TASKS:
        for tokens in options.tokens:
            make = partial(
                ruler_items,
                task,
                tokens=tokens,
                seed=options.seed,
                tokens_of=splitter.count,
                haystack=options.haystack,
            )
            items = list(make(count=options.items))
            folder: Path = options.out / str(tokens) / task
            folder.mkdir(parents=True, exist_ok=True)
            lines = (json.dumps(item, ensure_ascii=False) for item in as_ruler_rows(items))
            (folder / "validation.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
            made[f"{tokens}/{task}"] = write_parquet(as_reading_rows(items), folder / "validation.parquet", READING)
            if options.train:
                rows = as_reading_rows(make(count=options.train, split="train"))
                made[f"{tokens}/{task}/train"] = write_parquet(rows, folder / "train.parquet", READING)
    return {"items": made}


def memreader(options: argparse.Namespace) -> Facts:
    """Make a teacher's traces over dialogues, to imitate and as tasks."""
    return asyncio.run(_taught(options))


async def _taught(options: argparse.Namespace) -> Facts:
    source, counts = f"memloop/{options.format}", Counter[str]()
    imitation, tasks = list[Json](), list[Json]()
    async with models_of(options) as models:
        name, model = models[0]
        profile = load_profile(options.profile)
        window = options.window or profile.turns_per_decision
        teacher = Teacher(model, profile, window=window)
        run: dict[str, object] = {"teacher": name, "profile": profile.ref, "window": window}
        with Journal(
            options.out / "replies.journal", run, records=TypeAdapter(PaidReply), key_of=lambda paid: paid.key
        ) as journal:
            talks = islice(conversations(options.data, options.format), options.limit)
            for talk in Progress().over(talks, total=options.limit, what="conversations"):
                async with aclosing(teacher.traces(talk, journal)) as traces:
                    async for trace in traces:
                        counts[decided_by(trace.result.decision)[0]] += 1
                        if trace.usable:
                            imitation.append(trace.imitation(source, len(imitation)))
                            tasks.append(trace.task(source, len(tasks)))
    made = {
        "train": write_parquet(imitation, options.out / "train.parquet", CONVERSATION),
        "tasks": write_parquet(tasks, options.out / "tasks.parquet", WRITING),
    }
    title = f"Memory decisions on {options.format}"
    write_conversations_card(options.out, title, made, options_of(options), license_="other")
    return {"rows": made, "decisions": dict(counts)}


def from_traces(options: argparse.Namespace) -> Facts:
    """Convert production traces to rows to imitate and to tasks."""
    sorted_, made = Sorted(), dict[str, int]()
    for split, make, schema in (
        ("imitation", sorted_.imitation, CONVERSATION),
        ("writing", sorted_.writing, WRITING),
        ("reading", sorted_.reading, READING),
    ):
        rows = Progress().over(of_each(options.traces, make), total=None, what=split)
        made[split] = write_parquet(rows, options.out / f"{split}.parquet", schema)
    facts: Facts = {"rejected": sorted_.rejected, "cut": sorted_.cut, "reads_without_gold": sorted_.without_gold}
    write_conversations_card(options.out, "Production traces", made, options_of(options) | facts, license_="other")
    return {"rows": made, **facts}


def bench(options: argparse.Namespace) -> Facts:
    """Measure time and memory of synthesis."""
    runs: list[Json] = []
    for run in bench_synthesis(options.items, documents=options.documents, seed=options.seed):
        runs.append(run)
        print(json.dumps(run))
    return {"benchmark": "synthesis", "runs": runs}


def options_of(options: argparse.Namespace) -> Facts:
    """Format the options for a card: only the names of files, and no endpoint's URL."""
    hidden = {"act", "out", "models", "api_key_variable"}
    shown = {name: value for name, value in vars(options).items() if name not in hidden and value is not None}
    named = {"models": [model for _, model in options.models]} if getattr(options, "models", None) else {}
    return {name: _without_folders(value) for name, value in {**shown, **named}.items()}


def _without_folders(value: object) -> object:
    if isinstance(value, list):
        return [_without_folders(each) for each in cast(list[object], value)]
    return value.name if isinstance(value, Path) else value
