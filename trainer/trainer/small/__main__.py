"""``python -m trainer.small replies | sft | evaluate | average | gpu | pack``: the commands of the small model."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch
from yaml import YAMLError

import memloop
import memloop_small
import trainer
from trainer.small.average import average
from trainer.small.gpu import GpuRun, train_on_gpu
from trainer.small.kinds import English
from trainer.small.measure import Asking, measure, read_by
from trainer.small.pack import pack
from trainer.small.recipe import load_recipe
from trainer.small.replies import write_base_replies
from trainer.small.sample import PROFILE
from trainer.small.train import new_run


def main() -> None:
    """Run one command; the last line is one JSON object."""
    parser = argparse.ArgumentParser(prog="trainer.small")
    commands = parser.add_subparsers(dest="command", required=True)
    replies = commands.add_parser("replies", help="write the base's own replies to general chat")
    replies.add_argument("--base", type=Path, required=True)
    replies.add_argument("--count", type=int, default=600)
    replies.add_argument("file", type=Path)
    sft = commands.add_parser("sft", help="teach by examples")
    sft.add_argument("--recipe", type=Path, required=True)
    sft.add_argument("overrides", nargs="*")
    evaluate = commands.add_parser("evaluate", help="measure on what training never shows")
    evaluate.add_argument("--base", type=Path, required=True)
    evaluate.add_argument("--adapter", type=Path, help="without one, the base")
    evaluate.add_argument("--samples", type=int, default=500, help="of each task")
    evaluate.add_argument("--examples", action="store_true", help="show three examples in each prompt")
    evaluate.add_argument("--lengths", type=int, nargs="*", default=[], help="read whole documents of so many tokens")
    evaluate.add_argument("--documents", type=int, default=64, help="of each length")
    evaluate.add_argument("--chunk-tokens", type=int, default=PROFILE.budget.chunk_tokens)
    averaging = commands.add_parser("average", help="average adapters of runs that went on from each other")
    averaging.add_argument("adapters", type=Path, nargs="+")
    averaging.add_argument("--output", type=Path, required=True)
    gpu = commands.add_parser("gpu", help="the whole training on one GPU in minutes")
    gpu.add_argument("--base", type=Path, required=True)
    gpu.add_argument("--output", type=Path, required=True)
    gpu.add_argument("--minutes", type=float, default=13.0)
    gpu.add_argument("--small", action="store_true", help="few rows, prompts and samples: a dry run on a CPU")
    packing = commands.add_parser("pack", help="pack what a bare machine with one GPU needs")
    packing.add_argument("folder", type=Path)
    packing.add_argument("--wheels", type=Path, required=True, help="a folder of wheels for each Python, and any")
    options = parser.parse_args()
    torch.set_num_threads(1)
    facts: dict[str, object] = {}
    match options.command:
        case "sft":
            try:
                run = new_run(load_recipe(options.recipe, tuple(options.overrides)))
            except (OSError, ValueError, YAMLError) as error:
                parser.error(str(error))
            facts = asdict(run.train())
        case "evaluate":
            facts = measure(options.base, options.adapter, samples=options.samples, examples=options.examples)
            reading = {"lengths": options.lengths, "count": options.documents, "chunk_tokens": options.chunk_tokens}
            facts |= read_by(options.base, options.adapter, **reading) if options.lengths else {}
        case "replies":
            asking = Asking.load(options.base)
            facts = {"replies": write_base_replies(options.file, asking.ended, English("train"), options.count)}
        case "average":
            average(options.adapters, options.output)
        case "pack":
            sources = [Path(str(each.__file__)).parent for each in (memloop, memloop_small, trainer)]
            made = pack(options.folder, sources=sources, wheels=options.wheels)
            facts = {file.name: file.stat().st_size for file in made}
        case _:
            settings = GpuRun(options.base, options.output, options.minutes)
            facts = train_on_gpu(settings.dry() if options.small else settings)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
