"""How many calls a read costs, for estimates and admission."""

from memloop.wire.long_read import Strategy


def memagent_calls(chunks: int) -> int:
    """Exact: one call per chunk, and the answer."""
    return chunks + 1


def memreread_calls(chunks: int, *, rereads: int, max_rereads: int) -> int:
    """Calls of a read that used ``rereads`` of at most ``max_rereads``: (1+k)·N + (k + [k<R]) + 2k + 1."""
    judged = rereads + int(rereads < max_rereads)
    return (1 + rereads) * chunks + judged + 2 * rereads + 1


def max_calls(strategy: Strategy, chunks: int, *, max_rereads: int) -> int:
    """The most that a read can cost."""
    if strategy == "memagent":
        return memagent_calls(chunks)
    return memreread_calls(chunks, rereads=max_rereads, max_rereads=max_rereads)
