"""``python -m evaluation``: the same as ``memloop-evaluate``."""

from evaluation.command import main

if __name__ == "__main__":
    main()
