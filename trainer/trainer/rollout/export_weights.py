"""The weights of an export: adapters merged, cut into files, and loaded back.

    W' = W + (alpha / r) · B · A          for every linear layer with an adapter; computed in float32, stored as W was

verl's merger writes the base weights and the adapter side by side, and an engine that loads the folder serves the base.
"""

# transformers and peft are partly untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownParameterType=false
from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.rollout.export_record import ExportError

ADAPTER: Final = "lora_adapter"
"""The folder in which verl's merger leaves the adapter."""
SHARD_BYTES: Final = 5 << 30
ROUNDING: Final = 0.02
"""How far, relative to their size, logits may move when merged weights are rounded to bfloat16."""
_PROBE: Final = (1, 48)
"""Rows and tokens of the check's input."""
_PAIR: Final = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.weight")
_INDEX: Final = "model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Adapter:
    """Pairs (A, B) by the name of the weight that they change; ``scale`` is alpha / r."""

    pairs: Mapping[str, tuple[Tensor, Tensor]]
    scale: float

    @classmethod
    def read(cls, folder: Path) -> Adapter:
        """Read an adapter of linear layers. Raises ExportError for any other."""
        config: dict[str, Any] = json.loads((folder / "adapter_config.json").read_text("utf-8"))
        rank, alpha = int(config.get("r") or 0), float(config.get("lora_alpha") or 0)
        if rank < 1 or alpha <= 0:
            raise ExportError(f"the adapter's rank is {rank} and its alpha {alpha}: lora_train_meta.json is missing")
        if unknown := [name for name in ("use_dora", "use_rslora") if config.get(name)]:
            raise ExportError(f"the adapter has {', '.join(unknown)}, which is not merged here")
        halves: dict[str, dict[str, Tensor]] = {}
        for name, tensor in load_file(folder / "adapter_model.safetensors").items():
            found = _PAIR.fullmatch(name)
            if found is None:
                raise ExportError(f"the adapter has {name}, which is not of a linear layer")
            halves.setdefault(f"{found[1]}.weight", {})[found[2]] = tensor
        if broken := [name for name, pair in halves.items() if set(pair) != {"A", "B"}]:
            raise ExportError(f"the adapter has one half of {', '.join(broken)}")
        return cls({name: (pair["A"], pair["B"]) for name, pair in halves.items()}, alpha / rank)

    def merged(self, name: str, weight: Tensor) -> Tensor:
        """Return the weight with its adapter, in the weight's own type."""
        if name not in self.pairs:
            return weight
        a, b = self.pairs[name]
        return (weight.float() + self.scale * (b.float() @ a.float())).to(weight.dtype)


def merge_adapter(folder: Path, *, shard_bytes: int = SHARD_BYTES) -> bool:
    """Merge the folder's adapter into its weights, if it has one; return whether it had.

    Raises ExportError when the adapter does not fit the weights, or the merged model does not compute what base and
    adapter compute together.
    """
    beside = folder / ADAPTER
    if not beside.is_dir():
        return False
    adapter = Adapter.read(beside)
    if strange := set(adapter.pairs) - {name for name, _ in _tensors(folder)}:
        raise ExportError(f"the adapter changes {', '.join(sorted(strange))}, which the model does not have")
    probe = _probe(folder)
    base, adapted = _logits(folder, probe), _logits(folder, probe, adapter=beside)
    _rewrite(folder, adapter, shard_bytes)
    compare(base=base, adapted=adapted, exported=_logits(folder, probe))
    shutil.rmtree(beside)
    return True


def compare(*, base: Tensor, adapted: Tensor, exported: Tensor) -> None:
    """Raise ExportError unless the exported logits are the adapted ones up to rounding, and nearer to them than to the
    base's.
    """
    away = float((exported - adapted).norm())
    if away > ROUNDING * float(adapted.norm()):
        raise ExportError("the merged weights do not compute what base and adapter compute together")
    if away > 0 and away >= float((exported - base).norm()):
        raise ExportError("the adapter's effect is lost in the rounding to bfloat16: it was trained too little")


def load_back(folder: Path) -> None:
    """Load the export as an engine would, and compute logits. Raises ExportError with the reason."""
    if not bool(torch.isfinite(_logits(folder, _probe(folder))).all()):
        raise ExportError("the exported model computes logits that are not finite")


def shard(folder: Path, *, shard_bytes: int = SHARD_BYTES) -> None:
    """Cut the folder's weights into files of at most ``shard_bytes`` (a larger tensor has a file of its own)."""
    _rewrite(folder, Adapter({}, 0.0), shard_bytes)


def _tensors(folder: Path) -> Iterator[tuple[str, Tensor]]:
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            for name in sorted(opened.keys()):
                yield name, cast(Tensor, opened.get_tensor(name))


def _rewrite(folder: Path, adapter: Adapter, shard_bytes: int) -> None:
    """Write the merged weights beside the old ones, and then put them in their place."""
    fresh = folder / "fresh"
    fresh.mkdir()
    held, size, files, total = dict[str, Tensor](), 0, list[list[str]](), 0
    for name, tensor in _tensors(folder):
        if held and size + tensor.nbytes > shard_bytes:
            files.append(_save(held, fresh, len(files)))
            held, size = {}, 0
        held[name] = adapter.merged(name, tensor).contiguous()
        size, total = size + tensor.nbytes, total + tensor.nbytes
    files.append(_save(held, fresh, len(files)))
    for old in [*folder.glob("*.safetensors"), folder / _INDEX]:
        old.unlink(missing_ok=True)
    _name(fresh, folder, files, total)
    fresh.rmdir()


def _save(tensors: dict[str, Tensor], folder: Path, number: int) -> list[str]:
    save_file(tensors, folder / f"{number}.safetensors", metadata={"format": "pt"})
    return list(tensors)


def _name(fresh: Path, folder: Path, files: list[list[str]], total: int) -> None:
    """Name the files as transformers and the engines look for them, with an index where there are several."""
    count = len(files)
    if count == 1:
        (fresh / "0.safetensors").rename(folder / "model.safetensors")
        return
    names = [f"model-{number + 1:05}-of-{count:05}.safetensors" for number in range(count)]
    for number, name in enumerate(names):
        (fresh / f"{number}.safetensors").rename(folder / name)
    placed = {tensor: name for name, tensors in zip(names, files, strict=True) for tensor in tensors}
    index = {"metadata": {"total_size": total}, "weight_map": placed}
    (folder / _INDEX).write_text(json.dumps(index, indent=2) + "\n", "utf-8")


def _probe(folder: Path) -> Tensor:
    """Return token IDs from all over the vocabulary, the same for every model of its size."""
    vocabulary = int(json.loads((folder / "config.json").read_text("utf-8"))["vocab_size"])
    return torch.randint(vocabulary, _PROBE, generator=torch.Generator().manual_seed(0))


def _logits(folder: Path, probe: Tensor, *, adapter: Path | None = None) -> Tensor:
    """Return the model's logits in float32. Raises ExportError when weights are missing or left over."""
    from transformers import AutoModelForCausalLM

    load: Any = AutoModelForCausalLM.from_pretrained
    try:
        model, told = load(folder, dtype=torch.float32, output_loading_info=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"the exported model does not load: {error}") from error
    if wrong := [*told["missing_keys"], *told["unexpected_keys"], *told["mismatched_keys"]]:
        raise ExportError(
            f"the exported model has missing, left over or misshapen weights: {', '.join(map(str, wrong))}"
        )
    if adapter is not None:
        from peft import PeftModel

        model = cast(Any, PeftModel).from_pretrained(model, adapter)
    with torch.no_grad():
        return model.eval()(probe).logits
