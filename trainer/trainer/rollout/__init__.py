"""Runs the served loops as agent loops of unmodified verl.

``recording``, ``sessions`` and ``tasks`` do not import verl: a model that records its turns, and the loops that run on
it. ``agents``, ``updates`` and ``cpu`` connect them to verl; verl loads ``plugin`` in each of its processes, and
``task_runner`` the trainer in one.
"""
