#!/bin/sh
# One backup in a folder named by its time, checked; then the oldest beyond $KEEP are deleted, and folders without a manifest,
# which are no backups. A backup that fails leaves its predecessors alone.
set -eu
umask 077
folder="$BACKUPS/$(date -u +%Y-%m-%dT%H%M%SZ)"
for left in "$BACKUPS"/????-??-??T??????Z; do
  if [ -d "$left" ] && [ ! -f "$left/manifest.json" ]; then rm -rf -- "$left"; fi
done
python -m memory_store.backup create "$folder"
python -m memory_store.backup check "$folder"
ls -1d "$BACKUPS"/????-??-??T??????Z | sort -r | tail -n "+$((KEEP + 1))" | while read -r old; do
  rm -rf -- "$old"
  echo "deleted $old"
done
