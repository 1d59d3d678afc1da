"""``memloop demo``: the main job on real input, with its claims checked."""
