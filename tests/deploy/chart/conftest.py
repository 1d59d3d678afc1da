"""The chart, loaded by Helm once, and what it renders from each file of values."""

from collections.abc import Iterator

import pytest

from tests.deploy.chart.chart_release import FILES, Rendered, Values, open_chart, values_of


@pytest.fixture(scope="session")
def chart() -> Iterator[Rendered]:
    with open_chart() as opened:
        yield Rendered(opened)


@pytest.fixture(params=sorted(FILES))
def values(request: pytest.FixtureRequest) -> Values:
    """Each file of the matrix in turn."""
    return values_of(request.param)


@pytest.fixture
def minimal() -> Values:
    return values_of("minimal")
