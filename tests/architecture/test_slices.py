"""The services are cut into slices: few modules at the root, no two folders that import each other."""

from pathlib import Path

import pytest

from tests.architecture.arrows import Package, read_package

SERVICES = Path(__file__).resolve().parents[2] / "services"
GATEWAY = SERVICES / "gateway/gateway"
STORE = SERVICES / "memory-store/memory_store"
FRONTS = {"access", "addresses", "engine", "files", "idempotency", "queue"}
"""Folders of the gateway whose package names all that other folders may use."""


@pytest.fixture(scope="module")
def gateway() -> Package:
    return read_package(GATEWAY)


@pytest.mark.parametrize(
    ("folder", "root"),
    [
        pytest.param(GATEWAY, {"main", "worker", "settings", "metrics", "document"}, id="gateway"),
        pytest.param(STORE, {"main", "settings", "metrics"}, id="memory_store"),
    ],
)
def test_the_root_holds_the_process_and_every_other_module_lies_in_a_slice(folder: Path, root: set[str]) -> None:
    assert read_package(folder).root_modules == root


@pytest.mark.parametrize("folder", [GATEWAY, STORE], ids=["gateway", "memory_store"])
def test_no_folders_import_one_another_in_a_circle(folder: Path) -> None:
    assert read_package(folder).folder_cycle == []


def test_few_imports_cross_the_gateways_folders(gateway: Package) -> None:
    assert len(gateway.between_folders) <= 140


def test_other_folders_use_a_slices_package_and_nothing_below_it(gateway: Package) -> None:
    below = {other for _, other in gateway.between_folders if len(parts := other.split(".")) > 2 and parts[1] in FRONTS}
    assert below == set()


def test_a_circle_of_folders_is_found(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    for module, text in {
        "__init__": "",
        "till/__init__": "",
        "till/pay": "from shop.stock import shelf",
        "stock/__init__": "",
        "stock/shelf": "import shop.till.pay\nfrom shop.stock.box import Box",
        "stock/box": "class Box: ...",
        "main": "from shop.till.pay import shelf",
    }.items():
        path = package / f"{module}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shop = read_package(package)
    assert (shop.root_modules, shop.folders) == ({"main"}, {"till", "stock"})
    assert set(shop.folder_cycle) == {"till", "stock"}
    assert (len(shop.arrows), len(shop.crossing), len(shop.between_folders)) == (4, 3, 2)
