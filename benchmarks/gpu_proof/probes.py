"""What a GPU does with torch, transformers and vLLM: ``python -m benchmarks.gpu_proof.probes torch``. Prints JSON."""

# vLLM is untyped here, torch in part.
# pyright: reportUnknownMemberType=false, reportMissingImports=false, reportUnknownVariableType=false
import asyncio
import json
import sys
import time
from typing import Any

from benchmarks.gpu_proof.steps import ROOT, TINY

_SIZE, _ROUNDS = 8192, 20
_FACT = "The vault code of Marta is 731. "
_QUESTION = "What is the vault code of Marta?"


def torch_probe() -> dict[str, object]:
    """Multiply matrices in bfloat16."""
    import torch

    cuda: Any = torch.cuda
    one = torch.randn(_SIZE, _SIZE, device="cuda", dtype=torch.bfloat16)
    torch.matmul(one, one)
    cuda.synchronize()
    began = time.perf_counter()
    for _ in range(_ROUNDS):
        torch.matmul(one, one)
    cuda.synchronize()
    seconds = time.perf_counter() - began
    return {
        "device": cuda.get_device_name(0),
        "torch": torch.__version__,
        "memory_gib": round(cuda.get_device_properties(0).total_memory / 2**30, 1),
        "bf16_tflops": round(2 * _SIZE**3 * _ROUNDS / seconds / 1e12, 1),
    }


def transformers_probe() -> dict[str, object]:
    """Read a short document with the tiny model."""
    from memloop.chunking import TokenizerSplitter
    from memloop.loops.memagent import read_document
    from memloop.profiles import load_profile
    from trainer.transformers_model import TransformersModel

    model = TransformersModel.load(ROOT / TINY, device="cuda")
    began = time.perf_counter()
    profile, splitter = load_profile("tiny"), TokenizerSplitter((ROOT / TINY / "tokenizer.json").read_bytes())
    text = _FACT + "The whale swam on through the night. And the ship went after it. " * 12
    chunks = splitter.split(text, chunk_tokens=profile.budget.chunk_tokens)
    result = asyncio.run(read_document(_QUESTION, chunks, model=model, profile=profile))
    return {"answer": result.answer, "right": "731" in result.answer, "seconds": round(time.perf_counter() - began, 2)}


def vllm_probe() -> dict[str, object]:
    """Generate for many prompts at once with the tiny model."""
    import vllm

    engine: Any = vllm.LLM(model=str(ROOT / TINY), max_model_len=1024, gpu_memory_utilization=0.3, enforce_eager=True)
    began = time.perf_counter()
    outputs = engine.generate([_FACT * 8] * 256, vllm.SamplingParams(max_tokens=32, temperature=0.0))
    seconds = time.perf_counter() - began
    tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
    return {"vllm": vllm.__version__, "tokens_per_s": round(tokens / seconds), "prompts": len(outputs)}


def main() -> None:
    """Run the probe that the argument names; its figures are the last line."""
    probes = {"torch": torch_probe, "transformers": transformers_probe, "vllm": vllm_probe}
    print(json.dumps(probes[sys.argv[1]]()), flush=True)


if __name__ == "__main__":
    main()
