"""Names of vLLM's parsers, as listed by its ``ToolParserManager`` and ``ReasoningParserManager``.

Those of 0.32.0, which runs on CPUs, and what 0.33.0 on GPUs has besides.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


TOOL_CALL_PARSERS = _names(
    """
    apertus cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 deepseek_v41 dots
    ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4 hermes hf hunyuan_a13b hy_v3
    hy_v4 inkling internlm jamba k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_json llama4_pythonic
    longcat mimo minicpm5 minimax_m2 minimax_m3 mistral muse_glimmer olmo3 openai phi4_mini_json plamo3 poolside_v1
    pythonic qwen3_coder qwen3_json qwen3_xml seed_oss step3 step3p5 xlam
    """
)
ADDED_ON_GPUS = _names("beam muse musespark1x step5")
"""Both a tool and a reasoning parser each."""
REASONING_PARSERS = _names(
    """
    cohere_command3 cohere_command4 deepseek_r1 deepseek_v3 deepseek_v4 deepseek_v41 ernie45 gemma4 glm45 glm47
    granite granite_thinking_parser hf holo2 hunyuan_a13b hy_v3 hy_v4 inkling k2_horizon kimi_k2 kimi_k3 ling3 mimo
    minicpmv minimax_m2 minimax_m2_append_think minimax_m3 mistral muse_glimmer nemotron_v3 olmo3 openai_gptoss
    plamo3 poolside_v1 qwen3 seed_oss step3 step3p5
    """
)
