"""SGLang's command line, read by SGLang's own argument parser out of its wheel."""

import json
import subprocess
import sys
from pathlib import Path

from inference.engines import BUILDERS
from tests.fakes import sglang_arguments
from tests.inference.test_commands import BIG

SOURCES = Path(sys.prefix) / "sglang"
"""Where ``make test`` unpacks the wheel."""


def test_sglangs_own_parser_understands_every_flag_that_we_write() -> None:
    assert SOURCES.is_dir(), "SGLang's wheel is not unpacked: `make test` or `make check` does it"
    command = BUILDERS["sglang"](BIG).argv[3:]
    parsed = subprocess.run(
        [sys.executable, sglang_arguments.__file__, str(SOURCES), *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert parsed.returncode == 0, parsed.stderr[-2000:]
    understood = json.loads(parsed.stdout.splitlines()[-1])
    expected = {
        "model_path": "IAAR-Shanghai/MemReader-4B-thinking",
        "served_model_name": "MemReader-4B-thinking",
        "context_length": 40960,
        "max_running_requests": 64,
        "tp_size": 2,
        "dp_size": 2,
        "mem_fraction_static": 0.9,
        "kv_cache_dtype": "fp8_e4m3",
        "quantization": "fp8",
        "chunked_prefill_size": 8192,
        "speculative_algorithm": "NGRAM",
        "speculative_num_draft_tokens": 8,
        "enable_lora": True,
        "max_lora_rank": 32,
        "tool_call_parser": "qwen25",
        "reasoning_parser": "qwen3",
        "sampling_defaults": "openai",
        "enable_metrics": True,
        "random_seed": 7,
        "allowed_media_domains": ["images.example.com", "cdn.example.com"],
        "port": 7803,
    }
    assert {name: understood.get(name) for name in expected} == expected
