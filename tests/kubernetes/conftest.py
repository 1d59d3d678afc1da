"""One release of the chart on the cluster of KUBECONFIG, for all tests of a run; and the table at the end."""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator

import pytest

from tests.kubernetes.api import Api, ApiUnreachable
from tests.kubernetes.cluster import RESTRICTED, Cluster
from tests.kubernetes.images import provide
from tests.kubernetes.release import Release
from tests.kubernetes.settings import VARIABLES, ClusterSettings, SettingsRefused
from tests.kubernetes.table import Table
from tests.kubernetes.volumes import make_volumes

_TABLE = pytest.StashKey[Table]()
_SETTINGS = pytest.StashKey[ClusterSettings]()


def pytest_configure(config: pytest.Config) -> None:
    """Ends the run with the reason when there is no cluster to run on."""
    try:
        config.stash[_SETTINGS] = settings = ClusterSettings.read()
        version = Cluster(Api(str(settings.kubeconfig))).version()
    except SettingsRefused as refusal:
        known = "\n".join(f"  {name:<20} {meaning}" for name, meaning in VARIABLES.items())
        pytest.exit(f"{refusal}\n{known}", returncode=2)
    except ApiUnreachable as error:
        pytest.exit(f"no Kubernetes API server answers: {error}", returncode=2)
    config.stash[_TABLE] = Table([("Kubernetes", version, 0.0)])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write_line("")
    terminalreporter.write_line(config.stash[_TABLE].text())


@pytest.fixture(scope="session")
def table(pytestconfig: pytest.Config) -> Table:
    return pytestconfig.stash[_TABLE]


@pytest.fixture(scope="session")
def settings(pytestconfig: pytest.Config) -> ClusterSettings:
    return pytestconfig.stash[_SETTINGS]


@pytest.fixture(scope="session")
def cluster(settings: ClusterSettings) -> Cluster:
    return Cluster(Api(str(settings.kubeconfig)))


@pytest.fixture
def row(table: Table, request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Adds the test's row to the table, with the seconds so far."""
    began = time.monotonic()
    return lambda figure: table.add(request.node.name.removeprefix("test_"), figure, time.monotonic() - began)


@pytest.fixture(scope="session")
def namespaces(cluster: Cluster, settings: ClusterSettings) -> Iterator[Callable[..., str]]:
    """Makes namespaces, by a word for their names; they are gone at the end of the run."""
    made: list[str] = []

    def make(word: str, *, restricted: bool = True) -> str:
        name = f"memloop-{word}-{secrets.token_hex(3)}"
        cluster.make_namespace(name, RESTRICTED if restricted else {})
        made.append(name)
        return name

    yield make
    if not settings.keep:
        for name in made:
            cluster.drop_namespace(name)


@pytest.fixture(scope="session")
def undo(settings: ClusterSettings) -> Iterator[contextlib.ExitStack]:
    """Gets what takes back each change to the cluster; calls them all at the end, also after a failure."""
    changes = contextlib.ExitStack()
    yield changes
    if not settings.keep:
        changes.close()


@pytest.fixture(scope="session")
def release(
    cluster: Cluster,
    settings: ClusterSettings,
    namespaces: Callable[..., str],
    table: Table,
    undo: contextlib.ExitStack,
) -> Release:
    """The release, installed and ready, in a namespace at the restricted level."""
    began = time.monotonic()
    if settings.load:
        table.add("images built and loaded", str(provide(settings)), time.monotonic() - began)
    make_volumes(cluster, settings, undo)
    undo.callback(cluster.give_nodes(settings.gpu_resource, 4))
    made = Release(cluster, settings, namespaces("test"))
    undo.callback(cluster.drop_namespace, made.namespace)  # before its disks
    made.prepare()
    began = time.monotonic()
    undo.callback(made.uninstall)
    made.install()
    table.add("install at the restricted level, until every pod is ready", "ready", time.monotonic() - began)
    return made
