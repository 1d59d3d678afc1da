"""``memloop connect``: what it writes into the files of coding agents, and what it leaves alone."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.memloop_cli.conftest import Memloop

PERMISSIONS = {"permissions": {"allow": ["Bash(ls)"]}, "env": {"EDITOR": "vi"}}
CODEX = '# mine\napproval_policy = "never"\n\n[tui]\ntheme = "dark" # calm\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without any agent's files."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "MEMLOOP_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def files(home: Path) -> dict[str, str]:
    return {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_claude_code_gets_the_gateway_beside_its_own_settings(memloop: Memloop, home: Path) -> None:
    path = written(home / ".claude/settings.json", json.dumps(PERMISSIONS))
    result = memloop("connect", "claude-code", "--model", "m", "--user", "ada", "--url", "http://g:1/", "--yes")
    assert result.exit_code == 0
    settings = read(path)
    assert settings["permissions"] == PERMISSIONS["permissions"]
    assert settings["env"] == {
        "EDITOR": "vi",
        "ANTHROPIC_BASE_URL": "http://g:1",
        "ANTHROPIC_AUTH_TOKEN": "unused",
        "ANTHROPIC_CUSTOM_HEADERS": "X-Memory-User-Id: ada",
        "ANTHROPIC_MODEL": "m",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "m",
        "ANTHROPIC_DEFAULT_SONNET_MODEL": "m",
        "ANTHROPIC_DEFAULT_OPUS_MODEL": "m",
    }


@pytest.mark.parametrize("options", [(), ("--model", "m")], ids=["hooks", "gateway"])
@pytest.mark.parametrize(
    ("agent", "own"),
    [
        ("claude-code", {".claude/settings.json": json.dumps(PERMISSIONS)}),
        ("codex", {".codex/config.toml": CODEX, ".codex/hooks.json": '{"hooks": {"Stop": [{"hooks": []}]}}'}),
        ("claude-code", {}),
        ("codex", {}),
    ],
    ids=["claude-code", "codex", "claude-code, new", "codex, new"],
)
def test_what_was_there_is_there_again_after_a_removal(
    memloop: Memloop, home: Path, agent: str, own: dict[str, str], options: tuple[str, ...]
) -> None:
    for name, text in own.items():
        written(home / name, text)
    memloop("connect", agent, *options, "--user", "ada", "--yes")
    assert files(home) != own
    result = memloop("connect", agent, "--remove", "--yes")
    assert result.exit_code == 0
    left = {name: text for name, text in files(home).items() if "memloop-backup" not in name}
    assert left.keys() == own.keys()
    for name, text in own.items():
        parse = tomllib.loads if name.endswith(".toml") else json.loads
        assert parse(left[name]) == parse(text)


def test_the_rest_of_a_toml_file_keeps_its_comments(memloop: Memloop, home: Path) -> None:
    path = written(home / ".codex/config.toml", CODEX)
    memloop("connect", "codex", "--model", "m", "--user", "ada", "--url", "http://g:1", "--api-key", "k", "--yes")
    assert CODEX.strip() in path.read_text()
    found = tomllib.loads(path.read_text())
    assert (found["model"], found["model_provider"], found["tui"]) == ("m", "memloop", {"theme": "dark"})
    assert found["model_providers"]["memloop"] == {
        "name": "Memloop",
        "base_url": "http://g:1/v1",
        "wire_api": "responses",
        "http_headers": {"X-Memory-User-Id": "ada"},
        "env_key": "MEMLOOP_API_KEY",
    }


def test_a_second_call_replaces_the_first_and_an_equal_one_changes_nothing(memloop: Memloop, home: Path) -> None:
    memloop("connect", "claude-code", "--user", "ada", "--yes")
    memloop("connect", "claude-code", "--user", "bob", "--yes")
    hooks = read(home / ".claude/settings.json")["hooks"]
    commands = [hook["hooks"][0]["command"] for event in hooks.values() for hook in event]
    assert len(commands) == 2
    assert all("--user bob" in command for command in commands)
    before = files(home)
    assert "nothing to change" in memloop("connect", "claude-code", "--user", "bob", "--yes").output
    assert files(home) == before


@pytest.mark.parametrize(
    ("agent", "name", "text"),
    [
        ("claude-code", ".claude/settings.json", '{"env": {"ANTHROPIC_BASE_URL": "https://elsewhere"}}'),
        ("claude-code", ".claude/settings.json", '{"env": ["not an object"]}'),
        ("claude-code", ".claude/settings.json", "{broken"),
        ("claude-code", ".claude/settings.json", "[]"),
        ("codex", ".codex/config.toml", 'model = "gpt-5"\n'),
        ("codex", ".codex/config.toml", "broken =\n"),
    ],
)
def test_what_is_not_ours_is_never_overwritten(memloop: Memloop, home: Path, agent: str, name: str, text: str) -> None:
    path = written(home / name, text)
    result = memloop("connect", agent, "--model", "m", "--yes")
    assert result.exit_code == 1
    assert name in result.output
    assert files(home) == {name: path.read_text()} == {name: text}


def test_a_value_that_the_user_has_changed_since_is_left_in_place(memloop: Memloop, home: Path) -> None:
    memloop("connect", "claude-code", "--model", "m", "--yes")
    path = home / ".claude/settings.json"
    changed = read(path)
    changed["env"]["ANTHROPIC_MODEL"] = "mine"
    path.write_text(json.dumps(changed))
    memloop("connect", "claude-code", "--remove", "--yes")
    assert read(path) == {"env": {"ANTHROPIC_MODEL": "mine"}}


def test_the_change_is_shown_and_a_dry_run_writes_nothing(memloop: Memloop, home: Path) -> None:
    result = memloop("connect", "claude-code", "--model", "m", "--api-key", "mk-secret", "--dry-run")
    assert '+    "ANTHROPIC_MODEL": "m"' in result.output
    assert "mk-secret" not in result.output
    assert files(home) == {}


@pytest.mark.parametrize(("typed", "count"), [("n\n", 0), ("y\n", 2)])
def test_nothing_is_written_without_consent(memloop: Memloop, home: Path, typed: str, count: int) -> None:
    memloop("connect", "claude-code", typed=typed)
    assert len(files(home)) == count


def test_the_file_as_it_was_is_kept_beside_it_and_the_mode_stays(memloop: Memloop, home: Path) -> None:
    path = written(home / ".claude/settings.json", json.dumps(PERMISSIONS))
    path.chmod(0o644)
    result = memloop("connect", "claude-code", "--yes")
    backup = path.with_name("settings.json.memloop-backup")
    assert str(backup) in result.output.replace("\n", "")
    assert (read(backup), path.stat().st_mode & 0o777) == (PERMISSIONS, 0o644)


def test_a_new_file_with_a_key_is_readable_by_its_owner_alone(memloop: Memloop, home: Path) -> None:
    memloop("connect", "claude-code", "--model", "m", "--api-key", "mk-secret", "--yes")
    modes = {path.stat().st_mode & 0o777 for path in (home / ".claude").iterdir()}
    assert modes == {0o600}


def test_a_link_to_the_settings_stays_a_link(memloop: Memloop, home: Path) -> None:
    target = written(home / "dotfiles/claude.json", "{}")
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").symlink_to(target)
    memloop("connect", "claude-code", "--yes")
    assert (home / ".claude/settings.json").is_symlink()
    assert "hooks" in read(target)


def test_one_repository_has_a_memory_of_its_own(memloop: Memloop, home: Path) -> None:
    written(home / ".git/config", '[remote "origin"]\n\turl = git@example.org:team/app.git\n')
    written(home / ".git/HEAD", "ref: refs/heads/main\n")
    (home / ".git/objects").mkdir()
    (home / ".git/refs").mkdir()
    memloop("connect", "claude-code", "--model", "m", "--user", "ada", "--project", "--yes")
    headers = read(home / ".claude/settings.local.json")["env"]["ANTHROPIC_CUSTOM_HEADERS"]
    assert headers == "X-Memory-User-Id: ada\nX-Memory-Agent-Id: example.org/team/app"


def test_cursor_gets_the_tools_and_a_rule_that_uses_them(memloop: Memloop, home: Path) -> None:
    own = written(home / ".cursor/mcp.json", '{"mcpServers": {"other": {"url": "http://o"}}}')
    memloop("connect", "cursor", "--project", "--user", "ada", "--url", "http://g:1", "--api-key", "k", "--yes")
    servers = read(own)["mcpServers"]
    assert servers["other"] == {"url": "http://o"}
    assert servers["memloop"]["url"] == "http://g:1/mcp"
    assert servers["memloop"]["headers"] == {"Authorization": "Bearer ${env:MEMLOOP_API_KEY}"}
    rule = home / ".cursor/rules/memloop.mdc"
    assert 'user_id` "ada"' in rule.read_text()
    memloop("connect", "cursor", "--project", "--remove", "--yes")
    assert (rule.exists(), read(own)) == (False, {"mcpServers": {"other": {"url": "http://o"}}})


def test_a_rule_that_somebody_else_wrote_is_left_alone(memloop: Memloop, home: Path) -> None:
    rule = written(home / ".cursor/rules/memloop.mdc", "mine")
    assert memloop("connect", "cursor", "--project", "--yes").exit_code == 1
    assert rule.read_text() == "mine"


@pytest.mark.parametrize(
    "arguments", [("codex", "--project"), ("cursor", "--model", "m"), ("claude-code", "--user", "a\nX-Evil: 1")]
)
def test_what_an_agent_cannot_do_is_an_error(memloop: Memloop, home: Path, arguments: tuple[str, ...]) -> None:
    assert memloop("connect", *arguments, "--yes").exit_code == 2
    assert files(home) == {}
