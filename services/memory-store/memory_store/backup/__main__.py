"""``python -m memory_store.backup create FOLDER | check FOLDER | restore FOLDER``, with the stack's settings.

Clients of Qdrant and Redis, which import for two seconds, are imported only by the commands that call them.
"""

import argparse
import asyncio
import sys
from pathlib import Path

from memloop.wire.errors import MemloopError
from memory_store.backup.manifest import Manifest, checked
from memory_store.backup.restoring import restore


def _run(arguments: argparse.Namespace) -> Manifest:
    if arguments.command == "create":
        from memory_store.backup.creating import Stack, create

        return asyncio.run(create(arguments.folder, Stack()))
    if arguments.command == "check":
        return checked(arguments.folder)
    if arguments.qdrant:
        from memory_store.backup.qdrant_shards import Qdrant
        from memory_store.backup.restoring import restore_shards

        asyncio.run(restore_shards(arguments.folder, Qdrant()))
    return restore(
        arguments.folder, redis_dirs=arguments.redis_dir, data_dir=arguments.data_dir, storage_dir=arguments.storage_dir
    )


def main() -> None:
    """The command. Exits with 1 and a message when it could not do it all."""
    try:
        parser = argparse.ArgumentParser(
            prog="python -m memory_store.backup", description="Backup and restore of a stack."
        )
        commands = parser.add_subparsers(dest="command", required=True)
        make = commands.add_parser("create", help="of a running stack, into a new folder")
        make.add_argument("folder", type=Path)
        commands.add_parser("check", help="whether a backup is whole").add_argument("folder", type=Path)
        back = commands.add_parser("restore", help="into empty folders of a stack that is stopped")
        back.add_argument("folder", type=Path)
        back.add_argument("--redis-dir", type=Path, action="append", default=[], help="Redis's folder; one per primary")
        back.add_argument("--data-dir", type=Path, help="MEMLOOP_DATA_DIR, the folder of the embedded vectors")
        back.add_argument("--storage-dir", type=Path, help="the folder of MEMLOOP_STORAGE_URL")
        back.add_argument(
            "--qdrant", action="store_true", help="make the collections on the Qdrant cluster of QDRANT_URL"
        )
        manifest = _run(parser.parse_args())
    except MemloopError as error:
        sys.exit(error.message)
    for part in manifest.parts:
        print(f"{part.kind}\t{part.name}\t{part.size}")


if __name__ == "__main__":
    main()
