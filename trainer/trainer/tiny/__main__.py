"""``python -m trainer.tiny``: the same as ``python -m trainer tiny``."""

from trainer.tiny.command import main

if __name__ == "__main__":
    main()
