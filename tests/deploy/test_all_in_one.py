"""The program that runs the all-in-one image: keys, order, deaths and signals, with small processes as its parts."""

import hashlib
import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ENGINE = {"MEMLOOP_ENGINE_URL": "https://e.example/v1"}
PATIENCE_S = 60.0
STACK = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {folder!r})
from all_in_one import Part, run

here = Path({here!r})
LIVES = '''
import signal, sys, time
from pathlib import Path
name, here = sys.argv[1], Path(sys.argv[2])
def note(word):
    with (here / "log").open("a") as log:
        log.write(f"{{name}} {{word}}" + chr(10))
def stop(*_):
    note("stops")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
note("starts")
(here / name).touch()
while not (here / f"{{name}}-dies").exists():
    time.sleep(0.05)
sys.exit(3)
'''

def part(name):
    async def is_ready():
        return (here / name).exists()
    return Part(name, [sys.executable, "-c", LIVES, name, str(here)], is_ready, grace_s=60)

sys.exit(asyncio.run(run([[part("redis")], [part("store")], [part("gateway")]], "all ready")))
"""


@pytest.fixture(scope="module")
def program(root: Path) -> ModuleType:
    found = importlib.util.spec_from_file_location("all_in_one", root / "deploy/docker/all_in_one.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # its dataclasses look themselves up there
    found.loader.exec_module(module)
    return module


@pytest.fixture
def stack(root: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Three parts that live until they are stopped, or until a file tells them to die; all of them ready."""
    code = STACK.format(folder=str(root / "deploy/docker"), here=str(tmp_path))
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "all ready\n"
        yield process
        process.kill()


def log(folder: Path) -> list[str]:
    return (folder / "log").read_text().splitlines()


def test_the_parts_start_one_after_the_other_and_stop_in_reverse(stack: subprocess.Popen[str], tmp_path: Path) -> None:
    stack.send_signal(signal.SIGTERM)
    assert stack.wait(PATIENCE_S) == 0
    starts = ["redis starts", "store starts", "gateway starts"]
    assert log(tmp_path) == [*starts, "gateway stops", "store stops", "redis stops"]


def test_a_part_that_dies_stops_the_others_and_fails_the_container(
    stack: subprocess.Popen[str], tmp_path: Path
) -> None:
    (tmp_path / "store-dies").touch()
    assert stack.wait(PATIENCE_S) == 1
    assert log(tmp_path)[3:] == ["gateway stops", "redis stops"]
    assert stack.stderr is not None
    assert "store ended with status 3" in stack.stderr.read()


def test_a_part_that_dies_before_it_is_ready_fails_the_container(program: ModuleType) -> None:
    code = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(program.__file__ or "").parent)!r})
from all_in_one import Part, run
async def never():
    return False
sys.exit(asyncio.run(run([[Part("redis", [sys.executable, "-c", "raise SystemExit(9)"], never)]], "ready")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert "redis ended with status 9" in done.stderr


def test_a_container_without_an_engine_says_what_it_needs(program: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(program.Refused, match="-e MEMLOOP_ENGINE_URL=https://"):
        program.prepared({}, tmp_path)


def test_a_models_file_may_stand_for_the_engine(program: ModuleType, tmp_path: Path) -> None:
    assert program.prepared({"MEMLOOP_MODELS": "/m.toml"}, tmp_path)["MEMLOOP_MODELS"] == "/m.toml"


def test_an_engine_on_the_containers_own_loopback_is_named_in_a_warning(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.prepared({"MEMLOOP_ENGINE_URL": "http://localhost:11434/v1"}, tmp_path)
    assert "host.docker.internal" in capsys.readouterr().err


def test_the_first_start_makes_a_key_and_keeps_its_hash_alone(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = program.prepared(ENGINE, tmp_path)["MEMLOOP_API_KEYS"]
    key = capsys.readouterr().out.split()[-1]
    assert entry == f"local:{hashlib.sha256(key.encode()).hexdigest()} scopes={program.APP_SCOPES}"
    kept = tmp_path / "api-keys"
    assert (kept.read_text().strip(), kept.stat().st_mode & 0o777) == (entry, 0o600)


def test_a_later_start_knows_the_same_key_and_prints_none(
    program: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = program.prepared(ENGINE, tmp_path)["MEMLOOP_API_KEYS"]
    capsys.readouterr()
    assert program.prepared(ENGINE, tmp_path)["MEMLOOP_API_KEYS"] == first
    assert capsys.readouterr().out == ""


def test_a_given_key_is_used_and_not_written(program: ModuleType, tmp_path: Path) -> None:
    key = "a-key-of-my-own-choice"
    found = program.prepared({**ENGINE, "MEMLOOP_API_KEY": key}, tmp_path)["MEMLOOP_API_KEYS"]
    assert hashlib.sha256(key.encode()).hexdigest() in found
    assert not (tmp_path / "api-keys").exists()


def test_a_short_key_is_refused(program: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(program.Refused, match="at least 16 characters"):
        program.prepared({**ENGINE, "MEMLOOP_API_KEY": "secret"}, tmp_path)


@pytest.mark.parametrize("name", ["MEMLOOP_API_KEYS", "MEMLOOP_API_KEYS_FILE"])
def test_configured_keys_are_left_as_they_are(program: ModuleType, tmp_path: Path, name: str) -> None:
    found = program.prepared({**ENGINE, name: "given"}, tmp_path)
    assert {key: value for key, value in found.items() if key.startswith("MEMLOOP_API_KEY")} == {name: "given"}


def test_a_volume_that_cannot_be_written_is_named(program: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(program.Refused, match="must be writable for the user"):
        program.prepared(ENGINE, tmp_path / "absent")


def test_inside_only_the_gateway_listens_beyond_loopback(program: ModuleType, tmp_path: Path) -> None:
    given = {**ENGINE, "MEMLOOP_HOST": "0.0.0.0", "MEMLOOP_METRICS_PORT": "7809", "MEMLOOP_TLS_CERT": "/tls/tls.crt"}
    parts = {part.name: part for stage in program.stages(program.prepared(given, tmp_path), tmp_path) for part in stage}
    hosts = {name: part.environment["MEMLOOP_HOST"] for name, part in parts.items() if name != "redis"}
    assert hosts == {"store": "127.0.0.1", "worker": "127.0.0.1", "gateway": "0.0.0.0"}
    assert parts["gateway"].environment["MEMLOOP_METRICS_PORT"] == "7809"
    assert {parts[name].environment["MEMLOOP_METRICS_PORT"] for name in ("store", "worker")} == {""}
    certificates = {name: parts[name].environment["MEMLOOP_TLS_CERT"] for name in ("store", "worker", "gateway")}
    assert certificates == {"store": "", "worker": "", "gateway": "/tls/tls.crt"}


def test_redis_has_a_password_that_no_process_list_shows(program: ModuleType, tmp_path: Path) -> None:
    environment = program.prepared(ENGINE, tmp_path)
    redis = program.stages(environment, tmp_path)[0][0]
    password = environment["MEMLOOP_REDIS_URL"].partition("redis://:")[2].partition("@")[0]
    assert len(password) >= 32
    assert f"requirepass {password}\n".encode() in redis.given
    assert password not in " ".join(redis.command)
    assert b"appendfsync always" in redis.given
