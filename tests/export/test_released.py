"""Models that the package does not contain are fetched, and checked by their hash."""

import functools
import json
import shutil
import tomllib
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from answering import Quiet, running

from hopscope.errors import RunMissing, SharingError
from hopscope.export import released
from hopscope.store import gallery
from hopscope.store.files import sha256
from hopscope.store.manifest import MANIFEST

CLONE = Path(__file__).parents[2]
OWN = "transformer-d-fan-in"
NAME = f"gallery/{OWN}"


class Files(Quiet, SimpleHTTPRequestHandler):
    """The files of a folder."""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package, with the demo and the index, and an empty cache."""
    root = tmp_path / "package"
    shutil.copytree(gallery.ROOT / "planted", root / "planted")
    shutil.copy(gallery.INDEX, root)
    monkeypatch.setattr(gallery, "ROOT", root)
    monkeypatch.setattr(gallery, "INDEX", root / gallery.INDEX.name)
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """The folder of a release's files."""
    folder, source = tmp_path / "assets", CLONE / "hopscope" / "gallery" / OWN
    folder.mkdir()
    with zipfile.ZipFile(folder / released.asset(OWN), "w") as file:
        for path in sorted(source.rglob("*.*")):
            file.write(path, path.relative_to(source))
    return folder


@pytest.fixture
def address(assets: Path) -> Iterator[str]:
    """The same on a web server."""
    with running(functools.partial(Files, directory=assets)) as (_, found):
        yield found


def test_the_package_and_the_index_are_the_whole_gallery() -> None:
    settings = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))
    inside = settings["tool"]["setuptools"]["package-data"]["hopscope"]
    for name in gallery.names():
        packed = any(
            fnmatch(f"gallery/{name}/{MANIFEST}", each.replace("**/", "")) for each in inside
        )
        assert packed != (name in gallery.index()), name
    for name, known in gallery.index().items():
        assert sha256((gallery.ROOT / name / MANIFEST).read_bytes()) == known.sha256, name


def test_a_model_comes_from_a_clone_a_folder_and_an_address(
    installed: Path, assets: Path, address: str
) -> None:
    with pytest.raises(RunMissing, match=f"`hopscope pull {NAME}` fetches it"):
        gallery.find(NAME)
    for source in (str(CLONE), str(assets), address):
        found = released.pull(NAME, source)
        assert found.name == NAME
        assert found.path.is_relative_to(installed / "cache")
        assert gallery.find(NAME).verify() == []
        shutil.rmtree(found.path)
    assert gallery.names() == ["planted"]


def test_what_is_here_is_not_fetched_again(installed: Path, assets: Path) -> None:
    released.pull(NAME, str(assets))
    assert released.pull(NAME, "nowhere").name == NAME
    assert released.pull("gallery/planted", "nowhere").name == "gallery/planted"


def test_a_model_of_another_version_or_with_a_changed_file_is_refused(
    installed: Path, assets: Path
) -> None:
    folder = installed / "clone" / "hopscope" / "gallery" / OWN
    shutil.copytree(CLONE / "hopscope" / "gallery" / OWN, folder)
    weights = next(folder.glob("checkpoints/*"))
    data = weights.read_bytes()
    weights.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(SharingError, match="SHA-256 differs"):
        released.pull(NAME, str(installed / "clone"))
    weights.write_bytes(data)
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(SharingError, match="is not the one of hopscope"):
        released.pull(NAME, str(installed / "clone"))
    assert gallery.names() == ["planted"]


def test_a_zip_writes_nowhere_else(installed: Path, assets: Path) -> None:
    with zipfile.ZipFile(assets / released.asset(OWN), "a") as file:
        file.writestr("../../evil.json", "{}")
        file.writestr("more.py", "")
    released.pull(NAME, str(assets))
    assert not [path for path in installed.rglob("*") if path.name in ("evil.json", "more.py")]


def test_what_cannot_be_fetched_is_one_line(
    installed: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = installed / "empty"
    empty.mkdir()
    for source, words in {
        f"{address}/no": "HTTP Error 404.*--from FOLDER takes it from a clone",
        "http://127.0.0.1:9": "cannot fetch",
        "ftp://somewhere": "neither a folder nor an address",
        str(empty): f"{empty} has neither",
    }.items():
        with pytest.raises(SharingError, match=words):
            released.pull(NAME, source)
    (empty / released.asset(OWN)).write_bytes(b"no zip")
    with pytest.raises(SharingError, match="not a zip file"):
        released.pull(NAME, str(empty))
    monkeypatch.setattr(released, "REPOSITORY", "Unknown")
    with pytest.raises(SharingError, match="names no repository"):
        released.pull(NAME)
