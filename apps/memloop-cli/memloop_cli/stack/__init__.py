"""The local stack: which processes, in which order, when each is ready, and what happens when one dies."""
