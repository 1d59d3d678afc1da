"""The tests read the repository's own packages from its root."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
