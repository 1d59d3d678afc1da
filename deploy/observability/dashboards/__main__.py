"""Writes every dashboard into the given folder."""

import sys
from pathlib import Path

from deploy.observability.dashboards import chat, engine, long_read, memory, overview, trainer
from deploy.observability.dashboards.charts import to_json

BOARDS = (overview.BOARD, chat.BOARD, memory.BOARD, long_read.BOARD, engine.BOARD, trainer.BOARD)


def main() -> None:
    """Write the dashboards, and remove files of dashboards that no longer exist."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for board in BOARDS:
        (folder / f"{board.name}.json").write_text(to_json(board))


if __name__ == "__main__":
    main()
