"""Profiles from archives: what is unpacked, and what is refused."""

import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from memloop.profiles import ProfileError, load_profile
from memloop.profiles.archive import MOST_BYTES

MINE = {"manifest.toml": 'name = "mine"\nversion = "7"\nextends = "default"\n', "recall.txt": "Mine: {memories}"}


Make = Callable[[Path, Mapping[str, str | bytes]], Path]


def zipped(path: Path, files: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def tarred(path: Path, files: Mapping[str, str | bytes], *, link: str | None = None) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            raw = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(name)
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
        if link is not None:
            member = tarfile.TarInfo("answer.txt")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return path


@pytest.mark.parametrize("folder", ["", "my-checkpoint/"])
@pytest.mark.parametrize("make", [zipped, tarred])
def test_an_archive_is_a_profile(make: Make, folder: str, tmp_path: Path) -> None:
    suffix = "zip" if make is zipped else "tar.gz"
    profile = load_profile(make(tmp_path / f"mine.{suffix}", {folder + name: text for name, text in MINE.items()}))
    assert profile.ref.startswith("mine@7:")
    assert profile.prompts["recall"].template == "Mine: {memories}"
    assert profile.prompts["read"] == load_profile("default").prompts["read"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({**MINE, "../evil.txt": "x"}, "leads out of the archive"),
        ({**MINE, "/etc/evil.txt": "x"}, "leads out of the archive"),
        ({**MINE, "run.py": "x"}, "is not one of .json, .toml, .txt"),
        ({**MINE, "a.txt": b"\xff\xfe"}, "is not text"),
        ({**MINE, "deep/er/a.txt": "x"}, "different folders"),
        ({**MINE, **{f"{n}.txt": "x" for n in range(99)}}, "more than 64 files"),
        ({**MINE, "a.txt": b"0" * (MOST_BYTES + 1)}, f"{MOST_BYTES} bytes"),
        ({"a.txt": "x"}, "holds no manifest.toml"),
        ({"manifest.toml": MINE["manifest.toml"].replace("default", "..")}, "extends a built-in profile, not '..'"),
    ],
    ids=["up", "absolute", "kind", "binary", "folders", "many", "bomb", "no manifest", "foreign parent"],
)
@pytest.mark.parametrize("make", [zipped, tarred])
def test_a_hostile_archive_is_refused(
    make: Make, files: Mapping[str, str | bytes], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(ProfileError, match=reason):
        load_profile(make(tmp_path / ("mine.zip" if make is zipped else "mine.tgz"), files))


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="is a link"):
        load_profile(tarred(tmp_path / "mine.tgz", MINE, link="/etc/passwd"))


@pytest.mark.parametrize("name", ["broken.zip", "broken.tar.gz"])
def test_a_broken_archive_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x1f\x8b no archive")
    with pytest.raises(ProfileError, match="cannot be unpacked"):
        load_profile(tmp_path / name)
