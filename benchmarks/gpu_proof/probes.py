"""What packages and verl's update take of a GPU: ``python -m benchmarks.gpu_proof.probes packages``. Prints JSON."""

# verl and vLLM are untyped or absent here, torch is typed in part.
# pyright: reportUnknownMemberType=false, reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false
import importlib
import json
import sys
import time
from types import SimpleNamespace
from typing import Any

_SIZE, _ROUNDS = 8192, 20
_LENGTHS = (6100, 4300, 2900, 2000, 1084)
"""Of one micro-batch: 16,384 tokens, 30,500 when they are padded to the longest row."""


def packages() -> dict[str, object]:
    """Import what a run needs, name verl's platform, and multiply matrices in bfloat16."""
    names = ("torch", "transformers", "vllm", "ray", "tensordict", "transfer_queue", "verl")
    found: dict[str, object] = {name: str(getattr(importlib.import_module(name), "__version__", "?")) for name in names}
    import torch
    from verl.plugin.platform import get_platform

    cuda: Any = torch.cuda
    if not cuda.is_available():
        raise SystemExit(f"no CUDA device; imported {json.dumps(found)}")
    one = torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.bfloat16)
    torch.matmul(one, one)
    cuda.synchronize()
    began = time.perf_counter()
    for _ in range(_ROUNDS):
        torch.matmul(one, one)
    cuda.synchronize()
    seconds = time.perf_counter() - began
    return found | {
        "platform": type(get_platform()).__name__,
        "device": cuda.get_device_name(0),
        "memory_gib": round(cuda.get_device_properties(0).total_memory / 2**30, 1),
        "bf16_tflops": round(2 * _SIZE**3 * _ROUNDS / seconds / 1e12, 1),
    }


def logits() -> dict[str, object]:
    """Measure an update of four layers of Qwen2.5-7B's shape over padded rows, with fused kernels and without."""
    import torch

    cuda: Any = torch.cuda
    if not cuda.is_available():
        raise SystemExit("no CUDA device")
    figures = dict[str, object]()
    for name, fused, entropy in (("fused", True, True), ("whole", False, False), ("whole with entropy", False, True)):
        cuda.empty_cache()
        cuda.reset_peak_memory_stats()
        try:
            held, seconds = _updated(fused=fused, entropy=entropy)
            figures[name] = {"gib": round((cuda.max_memory_allocated() - held) / 2**30, 1), "seconds": seconds}
        except cuda.OutOfMemoryError as error:
            figures[name] = f"out of memory: {str(error)[:120]}"
        print(json.dumps(figures), flush=True)
    return figures


def _updated(*, fused: bool, entropy: bool) -> tuple[int, float]:
    """Run verl's own passes of one micro-batch; return the bytes of weights before, and the seconds."""
    import torch
    from tensordict import TensorDict
    from transformers import Qwen2Config, Qwen2ForCausalLM  # pyright: ignore[reportAttributeAccessIssue]
    from verl.models.transformers.monkey_patch import apply_monkey_patch
    from verl.utils import tensordict_utils
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    shape: dict[str, Any] = {"vocab_size": 152064, "hidden_size": 3584, "intermediate_size": 18944}
    heads: dict[str, Any] = {"num_hidden_layers": 4, "num_attention_heads": 28, "num_key_value_heads": 4}
    plain = Qwen2ForCausalLM.forward
    try:
        with torch.device("cuda"):
            model: Any = Qwen2ForCausalLM(Qwen2Config(attn_implementation="sdpa", **shape, **heads)).to(torch.bfloat16)
        apply_monkey_patch(model, use_remove_padding=False, use_fused_kernels=fused, fused_kernels_backend="torch")
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        model.train()
        engine: Any = FSDPEngineWithLMHead.__new__(FSDPEngineWithLMHead)  # without its processes and weights
        engine.engine_config = SimpleNamespace(entropy_checkpointing=False)
        engine.pad_to_length, engine.ulysses_sequence_parallel_size = None, 1
        rows = {
            "input_ids": [torch.randint(152064, (length,), device="cuda") for length in _LENGTHS],
            "position_ids": [torch.arange(length, device="cuda") for length in _LENGTHS],
        }
        batch = TensorDict(
            {name: torch.nested.nested_tensor(held, layout=torch.jagged) for name, held in rows.items()},
            batch_size=[len(_LENGTHS)],
        )
        facts = {"use_remove_padding": False, "use_fused_kernels": fused, "temperature": 1.0}
        for name, value in {**facts, "calculate_entropy": entropy}.items():
            tensordict_utils.assign_non_tensor(batch, **{name: value})
        held = torch.cuda.memory_allocated()
        began = time.perf_counter()
        inputs, arguments = engine.prepare_model_inputs(batch)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            output = engine.prepare_model_outputs(model(**inputs, use_cache=False), arguments, batch, None)
        output["log_probs"].values().mean().backward()
        torch.cuda.synchronize()
        return held, round(time.perf_counter() - began, 1)
    finally:
        Qwen2ForCausalLM.forward = plain  # verl patches the class


def main() -> None:
    """Run the probe that the argument names; its figures are the last line."""
    print(json.dumps({"packages": packages, "logits": logits}[sys.argv[1]]()), flush=True)


if __name__ == "__main__":
    main()
