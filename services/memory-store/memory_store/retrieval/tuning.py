"""The weights of a search, on the scale of a cosine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Weights of a search; 0 switches a part off.

    ``dense``: of the cosine. ``sparse``: of a BM25 score, which is 5 to 15 for a good match. ``beside`` and ``near``:
    the part of a turn's relevance that the turns one and two places away get. ``session``: the part of a session's
    best relevance that all of its turns get. ``speaker``: added to a turn whose speaker the question names; the name
    is then left out of both rankings. ``date``: added where the question names the time. ``asking``: the cost of a
    turn that ends with a question. ``helpful``: added to a memory that a client called helpful; ``outdated``: the cost
    of one that a client called outdated. One that a client called wrong is left out, whatever the weights.
    """

    dense: float = 1.0
    sparse: float = 0.03
    beside: float = 0.3
    near: float = 0.1
    session: float = 0.2
    speaker: float = 0.25
    date: float = 0.2
    asking: float = 0.1
    helpful: float = 0.05
    outdated: float = 0.3


PLAIN = Tuning(beside=0.0, near=0.0, session=0.0, speaker=0.0, date=0.0, asking=0.0, helpful=0.0, outdated=0.0)
"""The two rankings added up, and nothing else."""
