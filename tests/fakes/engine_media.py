"""Fetches a picture with the code of the vLLM that is installed: the URL, then the hosts that it may fetch from.

Prints the bytes' size, or the error. Its own process, because the import takes seconds.
"""

import sys


def main() -> None:
    from vllm.multimodal.media import MediaConnector
    from vllm.multimodal.media.image import ImageMediaIO

    url, *hosts = sys.argv[1:]
    try:
        picture = MediaConnector(allowed_media_domains=hosts).load_from_url(url, ImageMediaIO())
    except Exception as error:  # noqa: BLE001 - printed, whatever it is
        print(f"{type(error).__name__}: {error}")
    else:
        print(picture)


if __name__ == "__main__":
    main()
