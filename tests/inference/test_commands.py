"""The command line of each engine, word for word."""

from dataclasses import replace

import pytest

from inference.engines import BUILDERS, Adapter, EnginePlan, PromptLookup
from inference.machine import EngineName

BIG = EnginePlan(
    engine="vllm",
    python="python3",
    model="IAAR-Shanghai/MemReader-4B-thinking",
    served_name="MemReader-4B-thinking",
    host="0.0.0.0",
    port=7803,
    profile="default",
    local=False,
    api_key="secret",
    max_model_len=40960,
    max_num_seqs=64,
    dtype="bfloat16",
    kv_cache_dtype="fp8",
    memory_fraction=0.9,
    tensor_parallel_size=2,
    data_parallel_size=2,
    prefill_chunk_tokens=8192,
    speculation=PromptLookup(draft_tokens=8, shortest_match=3, longest_match=5),
    adapters=(Adapter("mine", "/adapters/mine"), Adapter("yours", "/adapters/yours")),
    adapter_rank=32,
    quantization="fp8",
    tool_call_parser="hermes",
    reasoning_parser="qwen3",
    strict_tools=True,
    chat_template="template.jinja",
    load_format="safetensors",
    revision="main",
    seed=7,
    trust_remote_code=True,
    media_domains=("images.example.com", "cdn.example.com"),
)
TINY = EnginePlan(
    engine="vllm-cpu",
    python="python3",
    model="/models/memloop-tiny",
    served_name="memloop-tiny",
    host="127.0.0.1",
    port=7803,
    profile="tiny",
    max_model_len=2048,
    max_num_seqs=16,
    dtype="float32",
    kv_cache_memory_bytes=134217728,
    tool_call_parser="hermes",
    reasoning_parser="qwen3",
)


def words(text: str, **values: str) -> tuple[str, ...]:
    """The words of a command; a word that names a value stands for it."""
    return tuple(values.get(word, word) for word in text.split())


def test_vllm_on_gpus_gets_every_value_of_the_plan() -> None:
    assert BUILDERS["vllm"](BIG).argv == words(
        "python3 -m vllm.entrypoints.openai.api_server --model IAAR-Shanghai/MemReader-4B-thinking"
        " --served-model-name MemReader-4B-thinking --revision main --load-format safetensors --dtype bfloat16"
        " --quantization fp8 --chat-template template.jinja --seed 7 --trust-remote-code"
        " --allowed-media-domains images.example.com cdn.example.com --host 0.0.0.0 --port 7803"
        " --disable-uvicorn-access-log --max-model-len 40960 --max-num-seqs 64 --tensor-parallel-size 2"
        " --data-parallel-size 2 --gpu-memory-utilization 0.9 --kv-cache-dtype fp8 --enable-prefix-caching"
        " --max-num-batched-tokens 8192 --speculative-config SPECULATION --enable-lora --max-lora-rank 32 --max-loras 2"
        " --lora-modules mine=/adapters/mine yours=/adapters/yours --enable-auto-tool-choice"
        " --tool-call-parser hermes --tool-strict-level parameter --reasoning-parser qwen3 --generation-config vllm"
        " --enable-prompt-tokens-details",
        SPECULATION='{"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_min": 3, "prompt_lookup_max": 5}',
    )


def test_vllm_cpu_gets_the_size_of_its_cache_and_does_not_compile() -> None:
    assert BUILDERS["vllm-cpu"](TINY).argv == words(
        "python3 -m vllm.entrypoints.openai.api_server --model /models/memloop-tiny --served-model-name memloop-tiny"
        " --dtype float32 --seed 0 --allowed-media-domains none.invalid --host 127.0.0.1 --port 7803"
        " --disable-uvicorn-access-log --max-model-len 2048"
        " --max-num-seqs 16 --kv-cache-memory-bytes 134217728 --enforce-eager --enable-prefix-caching"
        " --enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser qwen3 --generation-config vllm"
        " --enable-prompt-tokens-details --middleware inference.engines.seedless.Seedless"
    )


def test_vllm_cpu_never_sizes_its_cache_by_itself() -> None:
    argv = BUILDERS["vllm-cpu"](replace(TINY, kv_cache_memory_bytes=None)).argv
    assert argv[argv.index("--kv-cache-memory-bytes") + 1] == str(1 << 30)


@pytest.mark.parametrize(
    ("engine", "flag", "ours", "checkpoints"),
    [("vllm", "--generation-config", "vllm", "auto"), ("sglang", "--sampling-defaults", "openai", "model")],
)
def test_decoding_defaults_are_the_engines_unless_the_checkpoints_are_asked_for(
    engine: str, flag: str, ours: str, checkpoints: str
) -> None:
    plan = replace(BIG, engine=engine)
    for chosen, expected in ((plan, ours), (replace(plan, checkpoint_defaults=True), checkpoints)):
        argv = BUILDERS[chosen.engine](chosen).argv
        assert argv[argv.index(flag) + 1] == expected


def test_sglang_gets_the_same_plan_in_its_own_words() -> None:
    plan = replace(BIG, engine="sglang", enforce_eager=True, prefix_caching=False)
    assert BUILDERS["sglang"](plan).argv == words(
        "python3 -m sglang.launch_server --model-path IAAR-Shanghai/MemReader-4B-thinking"
        " --served-model-name MemReader-4B-thinking --revision main --load-format safetensors --dtype bfloat16"
        " --quantization fp8 --chat-template template.jinja --random-seed 7 --trust-remote-code"
        " --allowed-media-domains images.example.com cdn.example.com --host 0.0.0.0"
        " --port 7803 --api-key secret --enable-metrics --context-length 40960 --max-running-requests 64 --tp-size 2"
        " --dp-size 2 --mem-fraction-static 0.9 --kv-cache-dtype fp8_e4m3 --cuda-graph-backend-decode disabled"
        " --cuda-graph-backend-prefill disabled --disable-radix-cache --chunked-prefill-size 8192"
        " --speculative-algorithm NGRAM --speculative-num-draft-tokens 9 --speculative-ngram-max-trie-depth 13"
        " --enable-lora --max-lora-rank 32 --lora-paths mine=/adapters/mine yours=/adapters/yours"
        " --tool-call-parser qwen25"
        " --reasoning-parser qwen3 --sampling-defaults openai --enable-cache-report"
    )


@pytest.mark.parametrize(("rank", "bound"), [(1, 1), (2, 8), (12, 16), (24, 32), (48, 64), (300, 320), (512, 512)])
def test_vllm_gets_a_bound_of_ranks_that_it_takes(rank: int, bound: int) -> None:
    argv = BUILDERS["vllm"](replace(BIG, adapters=BIG.adapters[:1], adapter_rank=rank)).argv
    assert argv[argv.index("--max-lora-rank") + 1] == str(bound)
    assert "--max-loras" not in argv


def test_sglang_gets_an_adapter_by_the_part_of_its_name_behind_the_base() -> None:
    adapters = (Adapter(f"{BIG.served_name}:mine", "/adapters/mine"),)
    argv = BUILDERS["sglang"](replace(BIG, engine="sglang", adapters=adapters, adapter_rank=48)).argv
    assert argv[argv.index("--lora-paths") + 1] == "mine=/adapters/mine"
    assert argv[argv.index("--max-lora-rank") + 1] == "48"


@pytest.mark.parametrize(("strict", "level"), [(True, "2"), (False, None)])
def test_sglang_holds_tool_calls_to_their_schema_where_the_row_asks(strict: bool, level: str | None) -> None:
    command = BUILDERS["sglang"](replace(BIG, engine="sglang", strict_tools=strict))
    assert command.environment.get("SGLANG_TOOL_STRICT_LEVEL") == level


@pytest.mark.parametrize("engine", sorted(BUILDERS.keys() - {"openvino"}))  # which takes no pictures
def test_without_a_media_host_the_engine_fetches_from_none(engine: EngineName) -> None:
    argv = BUILDERS[engine](TINY).argv
    place = argv.index("--allowed-media-domains")
    assert argv[place + 1] == "none.invalid"
    assert argv[place + 2].startswith("--")


@pytest.mark.parametrize("engine", ["vllm", "vllm-cpu"])
def test_vllm_follows_no_redirect_of_a_media_host(engine: EngineName) -> None:
    assert BUILDERS[engine](BIG).environment["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] == "0"


def test_vllm_speaks_tls_with_the_launchers_certificate() -> None:
    plan = replace(TINY, tls_cert="/tls/tls.crt", tls_key="/tls/tls.key")
    flags = "--ssl-certfile /tls/tls.crt --ssl-keyfile /tls/tls.key --enable-ssl-refresh"
    assert flags in " ".join(BUILDERS["vllm"](plan).argv)
    asked = replace(plan, tls_client_ca="/tls/ca.crt")
    assert f"{flags} --ssl-ca-certs /tls/ca.crt --ssl-cert-reqs 2" in " ".join(BUILDERS["vllm"](asked).argv)
    assert asked.url == "https://127.0.0.1:7803"


def test_vllm_gets_its_key_where_no_process_list_shows_it() -> None:
    command = BUILDERS["vllm"](BIG)
    assert "secret" not in command.argv
    assert command.environment["VLLM_API_KEY"] == "secret"


def test_a_shown_command_hides_the_key() -> None:
    shown = BUILDERS["sglang"](BIG).shown()
    assert "secret" not in shown
    assert "--api-key ***" in shown


@pytest.mark.parametrize("engine", ["vllm", "sglang", "vllm-cpu"])
def test_no_engine_sends_telemetry(engine: str) -> None:
    environment = BUILDERS[engine](TINY).environment  # type: ignore[index]
    assert environment["VLLM_NO_USAGE_STATS"] == environment["DO_NOT_TRACK"] == "1"
    assert environment["HF_HUB_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize(("plan", "offline"), [(TINY, "1"), (BIG, None)], ids=["folder", "hub id"])
def test_the_hub_is_asked_only_for_a_model_that_is_not_on_disk(plan: EnginePlan, offline: str | None) -> None:
    assert BUILDERS[plan.engine](plan).environment.get("HF_HUB_OFFLINE") == offline


def test_a_cpus_engine_computes_in_the_schedulers_process_on_all_cores_but_one() -> None:
    command = BUILDERS["vllm-cpu"](replace(TINY, cores=8))
    environment = command.environment_within({"PATH": "/bin"})
    assert environment["VLLM_ENABLE_V1_MULTIPROCESSING"] == "0"
    assert (environment["OMP_NUM_THREADS"], environment["PATH"]) == ("7", "/bin")


def test_an_engine_on_one_core_has_a_thread() -> None:
    assert BUILDERS["vllm-cpu"](replace(TINY, cores=1)).defaults["OMP_NUM_THREADS"] == "1"


def test_the_operators_own_environment_wins_over_defaults_but_not_over_what_must_be() -> None:
    own = {"OMP_NUM_THREADS": "3", "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_NO_USAGE_STATS": "0"}
    environment = BUILDERS["vllm-cpu"](TINY).environment_within(own)
    assert environment["OMP_NUM_THREADS"] == "3"
    assert environment["VLLM_ENABLE_V1_MULTIPROCESSING"] == "1"
    assert environment["VLLM_NO_USAGE_STATS"] == "1"


def test_an_engine_on_gpus_keeps_its_own_processes_and_threads() -> None:
    assert BUILDERS["vllm"](BIG).defaults == BUILDERS["sglang"](BIG).defaults == {}


@pytest.mark.parametrize("engine", ["vllm", "sglang", "vllm-cpu"])
def test_a_users_own_arguments_come_last(engine: EngineName) -> None:
    extra = ("--hf-overrides", '{"rope_scaling": {"rope_type": "yarn", "factor": 4.0}}')
    assert BUILDERS[engine](replace(TINY, engine=engine, extra_args=extra)).argv[-2:] == extra
