"""Ray places every GPU recipe on a cluster like the chart's, of made-up CPUs and GPUs; a wrong size is refused soon."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest
import ray
import transfer_queue
from ray.cluster_utils import Cluster
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from trainer.rollout.check_cluster import check_cluster
from trainer.rollout.placement import Demand, Node
from trainer.rollout.placing import BoundedPools, NotPlaced, placed_within
from trainer.rollout.recipe import load_recipe
from trainer.rollout.train import count_cpus

RECIPES = sorted(each for each in Path("trainer/recipes").glob("*.yaml") if not each.stem.endswith("-cpu"))
SEVEN_B = Path("trainer/recipes/memagent-7b.yaml")
UNITS = "transfer_queue.backend.SimpleStorage.num_data_storage_units={}"
GPUS, CPUS = 8, 36
"""Of a worker of the chart, whose num-cpus is 3 a GPU and 12."""


def cluster_of(*nodes: Node, tries: int = 6) -> Any:
    """Nodes behind a head without CPUs. Ray gives each half a minute to start, too little on a busy machine."""
    cluster: Any = Cluster()
    try:
        cluster.add_node(num_cpus=0, include_dashboard=False)
        for node in nodes:
            cluster.add_node(num_cpus=node.cpus, num_gpus=node.gpus)
        cluster.wait_for_nodes(timeout=240)
    except Exception:
        cluster.shutdown()
        if tries == 1:
            raise
        return cluster_of(*nodes, tries=tries - 1)
    return cluster


@pytest.fixture(scope="module")
def chart() -> Generator[str]:
    """The address of a cluster of a head without CPUs and two workers with eight GPUs each."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_prestart_worker_first_driver", "0")
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = cluster_of(Node(CPUS, GPUS), Node(CPUS, GPUS))
        patched.setenv("RAY_ADDRESS", cluster.address)
        yield cluster.address
        cluster.shutdown()


@pytest.fixture
def driver(chart: str) -> Generator[None]:
    cast(Any, ray).init(address=chart, log_to_driver=False)
    yield
    cast(Any, ray).shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("file", RECIPES, ids=lambda path: path.stem)
def test_the_charts_cluster_takes_a_recipe(file: Path, chart: str) -> None:
    recipe = load_recipe(file, ["trainer.nnodes=2" if "nnodes: 1" not in file.read_text() else "trainer.nnodes=1"])
    assert list(check_cluster(recipe, join_within_s=0)) == []


@pytest.mark.slow
@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("file", RECIPES, ids=lambda path: path.stem)
def test_ray_places_the_groups_of_a_recipe(file: Path) -> None:
    trainer = load_recipe(file).config.trainer
    pools = BoundedPools({"global_pool": [trainer.n_gpus_per_node] * min(2, trainer.nnodes)}, {}, limit_s=60)
    pools.create_resource_pool()
    groups = pools.resource_pool_dict["global_pool"].get_placement_groups()
    assert [group.bundle_count for group in groups] == [trainer.n_gpus_per_node] * min(2, trainer.nnodes)
    for group in groups:
        ray.util.remove_placement_group(group)


@pytest.mark.slow
@pytest.mark.usefixtures("driver")
def test_the_queues_units_and_both_groups_have_room_together() -> None:
    config = load_recipe(SEVEN_B, ["trainer.nnodes=2", UNITS.format(2)]).config
    with placed_within(400, "the units of the transfer queue"):
        transfer_queue.init(config.transfer_queue)
    pools = BoundedPools({"global_pool": [GPUS, GPUS]}, {}, limit_s=60)
    pools.create_resource_pool()
    [first, _] = groups = pools.resource_pool_dict["global_pool"].get_placement_groups()
    worker = cast(Any, ray).remote(lambda: os.environ["CUDA_VISIBLE_DEVICES"])
    place = PlacementGroupSchedulingStrategy(placement_group=first, placement_group_bundle_index=0)
    seen = worker.options(num_gpus=1 / 3, num_cpus=1, scheduling_strategy=place).remote()
    assert cast(Any, ray).get(seen, timeout=120)
    transfer_queue.close()
    for group in groups:
        ray.util.remove_placement_group(group)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["trainer.nnodes=4"], "needs 4 nodes of 8 GPUs, and Ray has room for 2"),
        (["trainer.n_gpus_per_node=16", "trainer.nnodes=1"], "needs 1 nodes of 16 GPUs, and Ray has room for 0"),
        (
            ["trainer.nnodes=2", UNITS.format(40)],
            "needs 2 nodes with 46 of Ray's logical CPUs each (3 a GPU, 22",
        ),
    ],
)
def test_a_wrong_size_is_refused_within_a_minute(overrides: list[str], said: str, chart: str) -> None:
    began = time.monotonic()
    [reason] = check_cluster(load_recipe(SEVEN_B, overrides))
    assert said in reason
    assert "8 GPUs and 36 CPUs" in reason
    assert time.monotonic() - began < 60


@pytest.fixture
def no_interrupts() -> Generator[None]:
    """SIGINT is ignored, as in a process that a script started in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.slow
@pytest.mark.usefixtures("driver", "no_interrupts")
def test_groups_that_others_hold_up_end_the_wait_with_both_numbers() -> None:
    BoundedPools({"others": [5, 5]}, {}, limit_s=60).create_resource_pool()
    with pytest.raises(NotPlaced, match=r"1 × 6 GPUs within 2 s .*: 6 GPUs and 42 CPUs are free"):
        BoundedPools({"own": [6]}, {}, limit_s=2).create_resource_pool()


def test_nodes_with_too_few_logical_cpus_are_refused_with_both_numbers() -> None:
    as_requested = [Node(0, 0), Node(16, 8), Node(16, 8)]
    reason = Demand(groups=2, gpus=8, units=8).shortfall(as_requested)
    assert reason is not None
    assert "needs 2 nodes with 30 of Ray's logical CPUs" in reason
    assert "Ray has 0 such: 0 GPUs and 0 CPUs, 8 GPUs and 16 CPUs" in reason


def test_several_groups_may_share_a_large_node() -> None:
    assert Demand(groups=2, gpus=4, units=2).shortfall([Node(28, 8)]) is None
    assert Demand(groups=2, gpus=4, units=2).shortfall([Node(27, 8)]) is not None


@pytest.mark.parametrize("file", RECIPES, ids=lambda path: path.stem)
def test_a_ray_of_this_machine_counts_as_many_cpus_as_the_recipe_places(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    config = load_recipe(file, ["trainer.nnodes=1"]).config
    count_cpus(config)
    demand = Demand.of(config)
    assert demand.shortfall([Node(config.ray_kwargs.ray_init.num_cpus, demand.gpus)]) is None


@pytest.mark.parametrize(("asked", "platform"), [(None, "PlatformCUDA"), ("memloop-cpu", "CpuPlatform")])
def test_the_cpu_is_verls_platform_only_when_a_recipe_asks_for_it(asked: str | None, platform: str) -> None:
    environment = {**os.environ, "VERL_USE_EXTERNAL_MODULES": "trainer.rollout.plugin", "PATH": ""}
    environment = {name: value for name, value in environment.items() if name != "VERL_PLATFORM"}
    look = "import verl; from verl.plugin.platform import get_platform; print(type(get_platform()).__name__)"
    chosen = environment | ({"VERL_PLATFORM": asked} if asked else {})
    done = subprocess.run([sys.executable, "-c", look], env=chosen, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == platform
