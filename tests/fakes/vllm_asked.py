"""Asks the vLLM that is installed, in a process of its own: its import takes seconds and belongs in no test process.

``arguments WORD...`` prints what its argument parser understands of a command line. ``media URLS`` fetches pictures, a
JSON list of URLs with the allowed hosts, and prints a line for each, the picture or the error. ``window MODEL TOKENS
OVERRIDE...`` prints a JSON list of the windows that it gives, once for each override of the checkpoint's
configuration, null where it refuses for the window's sake.
"""

import json
import sys


def arguments(*words: str) -> None:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parsed = make_arg_parser(FlexibleArgumentParser()).parse_args(list(words))
    assert parsed is not None
    validate_parsed_serve_args(parsed)
    print(
        json.dumps(
            {name: value for name, value in vars(parsed).items() if isinstance(value, str | int | list | dict)},
            default=str,
        )
    )


def media(urls: str) -> None:
    from vllm.multimodal.media import MediaConnector
    from vllm.multimodal.media.image import ImageMediaIO

    for url, hosts in json.loads(urls):
        try:
            outcome = str(MediaConnector(allowed_media_domains=hosts).load_from_url(url, ImageMediaIO()))
        except Exception as error:  # noqa: BLE001 - printed, whatever it is
            outcome = f"{type(error).__name__}: {error}"
        print(outcome.replace("\n", " "))


def window(model: str, tokens: str, *overrides: str) -> None:
    from vllm.config import ModelConfig

    def given(override: dict[str, object]) -> int | None:
        try:
            return ModelConfig(model=model, max_model_len=int(tokens), hf_overrides=override).max_model_len
        except ValueError as error:
            if "max_model_len" in str(error):
                return None
            raise

    print(json.dumps([given(json.loads(override)) for override in overrides]))


if __name__ == "__main__":
    {"arguments": arguments, "media": media, "window": window}[sys.argv[1]](*sys.argv[2:])
