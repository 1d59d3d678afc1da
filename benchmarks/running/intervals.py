"""How sure a measured share is."""

from math import sqrt


def wilson(share: float, count: int, *, z: float = 1.96) -> tuple[float, float]:
    """Wilson's 95 % interval of a share (0 to 1) of ``count`` independent trials; all of it without trials."""
    if not count:
        return 0.0, 1.0
    centre = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return max(0.0, centre - half), min(1.0, centre + half)
