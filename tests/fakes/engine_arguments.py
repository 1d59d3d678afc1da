"""Parses a command line with the real argument parser of the vLLM that is installed; prints what it understood.

Its own process, because the import takes seconds and belongs in no test process.
"""

import json
import sys


def main() -> None:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(sys.argv[1:])
    assert arguments is not None
    validate_parsed_serve_args(arguments)
    print(
        json.dumps(
            {name: value for name, value in vars(arguments).items() if isinstance(value, str | int | list | dict)},
            default=str,
        )
    )


if __name__ == "__main__":
    main()
