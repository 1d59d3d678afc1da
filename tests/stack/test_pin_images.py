"""The digests of images, asked of a registry that follows the OCI distribution API to the letter."""

import asyncio
import base64
import hashlib
import json
import re
import shutil
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from aiohttp import web

from deploy.images.pinning import base_images, chart_images, main
from deploy.images.registry import Image, Registries, RegistryError
from deploy.images.writing import images_of_others, pinned_files
from tests.fakes.web_server import serving

TOKEN = "token-for-pulling"
BASIC = base64.b64encode(b"ci:secret").decode()
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"


@dataclass
class Registry:
    """A registry with some repositories, each with the tag ``0.1.0``; the token server wants a password."""

    repositories: set[str]
    url: str = ""
    names: str = DIGEST
    scopes: list[str] = field(default_factory=list[str])

    @property
    def host(self) -> str:
        """Host and port."""
        return self.url.removeprefix("http://")

    async def manifest(self, request: web.Request) -> web.Response:
        """``GET /v2/<name>/manifests/<reference>``."""
        name = request.match_info["name"]
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            asks = f'Bearer realm="{self.url}/token",service="registry.test",scope="repository:{name}:pull"'
            return web.json_response(
                {"errors": [{"code": "UNAUTHORIZED"}]}, status=401, headers={"WWW-Authenticate": asks}
            )
        if INDEX not in request.headers["Accept"]:
            return web.json_response({"errors": [{"code": "MANIFEST_UNKNOWN"}]}, status=404)
        if name not in self.repositories or request.match_info["tag"] != "0.1.0":
            return web.json_response({"errors": [{"code": "NAME_UNKNOWN"}]}, status=404)
        return web.Response(body=MANIFEST, content_type=INDEX, headers={"Docker-Content-Digest": self.names})

    async def token(self, request: web.Request) -> web.Response:
        """``GET /token``, with the user's password."""
        if request.headers.get("Authorization") != f"Basic {BASIC}":
            return web.json_response({"details": "incorrect username or password"}, status=401)
        self.scopes.append(request.query["scope"])
        return web.json_response({"token": TOKEN, "expires_in": 300})


@pytest.fixture
async def registry() -> AsyncGenerator[Registry]:
    """A registry with all of our images but the trainer's."""
    ours = chart_images("r.test/", "0.1.0")
    it = Registry({image.repository for name, image in ours.items() if name != "trainer"})
    routes = [web.get("/v2/{name:.+}/manifests/{tag}", it.manifest), web.get("/token", it.token)]
    async with serving(routes) as url:
        it.url = url
        yield it


@pytest.fixture
def logins(registry: Registry, tmp_path: Path) -> Path:
    """The file of ``docker login``."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": {registry.host: {"auth": BASIC}}}))
    return file


async def test_the_chart_s_values_pin_each_image_that_was_pushed(
    registry: Registry, logins: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = ["gateway", "memoryStore", "trainer"]
    only = [word for name in ours for word in ("--only", name)]
    arguments = ["--registry", f"{registry.host}/", "--tag", "0.1.0", *only]
    status = await asyncio.to_thread(main, arguments, logins=logins)
    printed = capsys.readouterr()
    assert yaml.safe_load(printed.out) == {"images": {"gateway": {"digest": DIGEST}, "memoryStore": {"digest": DIGEST}}}
    assert "trainer" in printed.err
    assert "404" in printed.err
    assert status == 1
    assert registry.scopes[0] == "repository:memloop/gateway:pull"


async def test_a_registry_without_a_login_names_the_image(registry: Registry) -> None:
    image = Image(registry.host, "memloop/gateway", "0.1.0")
    with pytest.raises(RegistryError, match=r"memloop/gateway:0\.1\.0: .*401"):
        await asyncio.to_thread(Registries().digest, image)


async def test_a_digest_that_is_not_the_manifest_s_is_refused(registry: Registry, logins: Path) -> None:
    registry.names = f"sha256:{'0' * 64}"
    with pytest.raises(RegistryError, match="the registry names sha256:0000"):
        await asyncio.to_thread(Registries.of_docker(logins).digest, Image(registry.host, "memloop/gateway", "0.1.0"))


async def test_a_password_goes_to_no_token_server_without_tls(registry: Registry, logins: Path) -> None:
    registry.url = registry.url.replace("127.0.0.1", "127.0.0.1.example.com")
    login = Registries.of_docker(logins).logins
    async with serving([web.get("/v2/{name:.+}/manifests/{tag}", registry.manifest)]) as url:
        host = url.removeprefix("http://")
        with pytest.raises(RegistryError, match="log in first"):
            await asyncio.to_thread(Registries({host: next(iter(login.values()))}).digest, Image(host, "a/b", "0.1.0"))


async def test_a_registry_that_is_away_is_named() -> None:
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:9/a/b:1"):
        await asyncio.to_thread(Registries().digest, Image("127.0.0.1:9", "a/b", "1"))


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("python:3.11-slim-bookworm", Image("docker.io", "library/python", "3.11-slim-bookworm")),
        ("vllm/vllm-openai:v0.33.0", Image("docker.io", "vllm/vllm-openai", "v0.33.0")),
        ("localhost:5000/a/b", Image("localhost:5000", "a/b", "latest")),
        ("registry.example.com/memloop/gateway:0.1.0", Image("registry.example.com", "memloop/gateway", "0.1.0")),
        ("docker.io/library/redis:7.4-bookworm", Image("docker.io", "library/redis", "7.4-bookworm")),
    ],
)
def test_names_are_read_as_docker_reads_them(name: str, image: Image) -> None:
    assert Image.parse(name) == image


def test_every_base_image_of_the_dockerfiles_can_be_pinned() -> None:
    assert {name: str(image) for name, image in base_images().items()} == {
        "PYTHON_IMAGE": "docker.io/library/python:3.11-slim-bookworm",
        "ENGINE_IMAGE": "docker.io/vllm/vllm-openai:v0.33.0",
    }


ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that name other projects' images, in a tree of their own."""
    for path in pinned_files(ROOT):
        (tmp_path / path.relative_to(ROOT).parent).mkdir(parents=True, exist_ok=True)
        shutil.copy(path, tmp_path / path.relative_to(ROOT))
    return tmp_path


def test_every_image_of_another_project_is_found() -> None:
    assert sorted(map(str, {str(image) for image in images_of_others(ROOT).values()})) == [
        "docker.io/grafana/grafana:12.1.1",
        "docker.io/library/python:3.11-slim-bookworm",
        "docker.io/library/redis:7.4-bookworm",
        "docker.io/prom/prometheus:v3.5.0",
        "docker.io/qdrant/qdrant:v1.20.0-unprivileged",
        "docker.io/vllm/vllm-openai:v0.33.0",
    ]


async def test_digests_are_written_beside_the_tags_and_written_again(
    registry: Registry, logins: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The registry stands for all others: the tree names it, and the tag that it has."""
    for path in pinned_files(copy):
        text = path.read_text().replace("registry: docker.io/", f"registry: {registry.host}/")
        for name in images_of_others(ROOT):
            image = Image.parse(name)
            registry.repositories.add(image.repository)
            text = text.replace(name, f"{registry.host}/{image.repository}:0.1.0")
            text = text.replace(f"tag: {image.tag},", "tag: 0.1.0,")
        path.write_text(text)
    assert await asyncio.to_thread(main, ["--write"], logins=logins, root=copy) == 0
    changed = capsys.readouterr().out.split()
    assert "docker-compose.yml" in changed
    assert "deploy/helm/memloop/values.yaml" in changed
    compose = yaml.safe_load((copy / "docker-compose.yml").read_text())["services"]
    for name in ("redis", "qdrant", "prometheus", "grafana"):
        assert re.fullmatch(rf"\S+:0\.1\.0@{DIGEST}", compose[name]["image"])
    images = yaml.safe_load((copy / "deploy/helm/memloop/values.yaml").read_text())["images"]
    pinned = {name for name, image in images.items() if image["digest"] == DIGEST}
    assert pinned == {"redis", "qdrant"}
    bases = "".join(path.read_text() for path in (copy / "deploy/docker").glob("*.Dockerfile"))
    for line in re.findall(r"^ARG (?:PYTHON|ENGINE)_IMAGE=.*$", bases, re.MULTILINE):
        assert line.endswith(f":0.1.0@{DIGEST}")
    before = (copy / "docker-compose.yml").read_text()
    assert await asyncio.to_thread(main, ["--write"], logins=logins, root=copy) == 0
    assert (copy / "docker-compose.yml").read_text() == before


async def test_an_image_that_its_registry_lacks_is_named_and_keeps_its_tag(
    registry: Registry, logins: Path, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compose = copy / "docker-compose.yml"
    text = compose.read_text().replace("redis:7.4-bookworm", f"{registry.host}/library/absent:0.1.0")
    compose.write_text(text)
    asked = ["--write", "--only", f"{registry.host}/library/absent:0.1.0"]
    assert await asyncio.to_thread(main, asked, logins=logins, root=copy) == 1
    assert "library/absent:0.1.0" in capsys.readouterr().err
    assert compose.read_text() == text
