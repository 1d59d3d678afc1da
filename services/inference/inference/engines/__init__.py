"""One module per engine: from a plan to the engine's own command line. Nothing here starts anything."""

from collections.abc import Callable

from inference.engines.command import Adapter, Command, EnginePlan, PromptLookup
from inference.engines.openvino import openvino_command
from inference.engines.sglang import sglang_command
from inference.engines.vllm import vllm_command, vllm_cpu_command
from inference.machine import EngineName

BUILDERS: dict[EngineName, Callable[[EnginePlan], Command]] = {
    "vllm": vllm_command,
    "vllm-cpu": vllm_cpu_command,
    "sglang": sglang_command,
    "openvino": openvino_command,
}

__all__ = ["BUILDERS", "Adapter", "Command", "EnginePlan", "PromptLookup"]
