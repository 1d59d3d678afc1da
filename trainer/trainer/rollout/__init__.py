"""Rollouts: the served loops as agent loops of verl, which is used as it is.

``recording``, ``sessions`` and ``tasks`` know no verl: a model that records what it did, and the loops run on it.
``agents``, ``updates`` and ``cpu`` put them into verl; ``plugin`` is what verl loads in each of its processes.
"""
