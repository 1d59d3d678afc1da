"""Asks the vLLM that is installed for a window, once for each override of a checkpoint's configuration.

Prints a JSON list of the windows that it gives, null where it refuses for the window's sake. Its own process, because
the import takes seconds and belongs in no test process.
"""

import json
import sys


def main() -> None:
    from vllm.config import ModelConfig

    def window(override: dict[str, object]) -> int | None:
        try:
            return ModelConfig(model=model, max_model_len=int(asked), hf_overrides=override).max_model_len
        except ValueError as error:
            if "max_model_len" in str(error):
                return None
            raise

    model, asked, *overrides = sys.argv[1:]
    print(json.dumps([window(json.loads(override)) for override in overrides]))


if __name__ == "__main__":
    main()
