"""Property tests draw the same examples in every run: a failure is that of a change, not of chance.

Derandomized tests have a fixed seed, but Hypothesis also draws from the constants of all modules of ours that are
loaded, and which these are depends on the tests that ran before in the same process.
"""

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.internal.constants_ast import Constants


def draw_steadily() -> None:
    """Let all property tests of this process draw the same examples in every run."""
    setattr(HypothesisProvider, "_local_constants", Constants())  # noqa: B010 - there is no setting for it
    slow_is_fine = [HealthCheck.too_slow]
    settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=slow_is_fine)
    settings.load_profile("steady")
