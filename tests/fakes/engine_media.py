"""Fetches pictures with the code of the vLLM that is installed: a JSON list of URLs, each with the allowed hosts.

Prints a line for each, the picture or the error. Its own process, because the import takes seconds.
"""

import json
import sys


def main() -> None:
    from vllm.multimodal.media import MediaConnector
    from vllm.multimodal.media.image import ImageMediaIO

    for url, hosts in json.loads(sys.argv[1]):
        try:
            outcome = str(MediaConnector(allowed_media_domains=hosts).load_from_url(url, ImageMediaIO()))
        except Exception as error:  # noqa: BLE001 - printed, whatever it is
            outcome = f"{type(error).__name__}: {error}"
        print(outcome.replace("\n", " "))


if __name__ == "__main__":
    main()
