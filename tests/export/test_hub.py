"""Runs go to a hub on this machine and come back; a hub that lies gets nothing into the store."""

import base64
import hashlib
import json
import sys
from collections.abc import Iterator

import pytest
from answering import COMMIT, hub_running

from hopscope.errors import RunMismatch, SharingError
from hopscope.export.hub import Hub, check_place
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import MANIFEST, FileEntry, Manifest

pytest.importorskip("huggingface_hub")


class Server:
    """One repository, me/mine; what is committed is kept."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.sizes: dict[str, int] = {}  # where it lies about them
        self.refuses = False
        self.lacks = ""  # the hub's word for what is not there
        self.asked: list[str] = []
        self.url = ""

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        self.asked.append(f"{method} {path}")
        if self.refuses:
            return 403, b'{"error": "You may not do that"}'
        if self.lacks:
            return 404, b""
        if path == "/api/repos/create":
            return 200, json.dumps({"url": f"{self.url}/me/mine"}).encode()
        if path.startswith("/api/models/me/mine/preupload/"):
            asked = [each["path"] for each in json.loads(body)["files"]]
            told = [{"path": p, "uploadMode": "regular", "shouldIgnore": False} for p in asked]
            return 200, json.dumps({"files": told}).encode()
        if path.startswith("/api/models/me/mine/commit/"):
            for line in map(json.loads, body.splitlines()):
                self.change(line["key"], line["value"])
            told = {
                "success": True,
                "commitOid": COMMIT,
                "commitUrl": f"{self.url}/me/mine/commit/{COMMIT}",
            }
            return 200, json.dumps(told).encode()
        if path == "/api/validate-yaml":
            return 200, b'{"errors": [], "warnings": []}'
        if path.startswith("/api/models/me/mine"):
            files = [
                {"rfilename": name, "size": self.sizes.get(name, len(data))}
                for name, data in self.files.items()
            ]
            return 200, json.dumps({"id": "me/mine", "sha": COMMIT, "siblings": files}).encode()
        name = path.removeprefix(f"/me/mine/resolve/{COMMIT}/")
        return (200, self.files[name]) if name in self.files else (404, b"")

    def change(self, key: str, value: dict[str, str]) -> None:
        if key == "file":
            self.files[value["path"]] = base64.b64decode(value["content"])
        elif key == "deletedFile":
            del self.files[value["path"]]

    def promise(self, manifest: Manifest) -> None:
        """Put another manifest there."""
        self.files[MANIFEST] = manifest.to_bytes()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    mine = Server()
    monkeypatch.setenv("HF_TOKEN", "hf_key")
    with hub_running(mine) as mine.url:
        yield mine


@pytest.fixture
def hub(server: Server) -> Hub:
    return Hub(server.url)


@pytest.fixture
def pushed(server: Server, hub: Hub, fleet: RunFolder) -> Server:
    """A hub that has the fleet, without what asking for that took."""
    server.files = {name: fleet.read(name) for name in fleet.manifest.files}
    server.promise(fleet.manifest)
    return server


def test_a_run_goes_there_and_comes_back(
    server: Server, hub: Hub, fleet: RunFolder, store: Store
) -> None:
    server.files = {"README.md": b"old", "checkpoints/step-00000001.safetensors": b"old"}
    server.promise(fleet.manifest)
    assert hub.push(fleet, "me/mine", private=True) == f"{server.url}/me/mine"
    assert {*server.files} == {*fleet.manifest.files, MANIFEST, "README.md"}
    assert b"library_name: hopscope" in server.files["README.md"]
    assert hub.is_run("me/mine")
    found = hub.pull("me/mine", store)
    assert found.name == fleet.name
    assert found.verify() == []
    assert not found.untracked()
    assert found.manifest == fleet.manifest
    assert hub.pull("me/mine@main", store).path == found.path
    found.commit({"notes.json": b"{}"})
    with pytest.raises(RunMismatch, match="is there already: `hopscope rm"):
        hub.pull("me/mine", store)


def test_a_model_of_the_gallery_comes_back_under_the_name_of_its_place(
    server: Server, hub: Hub, demo: RunFolder, store: Store
) -> None:
    hub.push(demo, "me/mine")
    assert server.files["circuit.png"].startswith(b"\x89PNG")
    found = hub.pull("me/mine", store)
    assert (found.name, found.verify()) == ("me--mine", [])


def test_names_that_no_run_has_are_refused(
    pushed: Server, hub: Hub, store: Store, fleet: RunFolder
) -> None:
    for name in ("../../evil.json", "checkpoints/model.bin"):
        content = json.loads(fleet.manifest.to_bytes())
        content["files"][name] = {"sha256": "0" * 64, "size": 1}
        del content["check"]
        text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        content["check"] = hashlib.sha256(text).hexdigest()
        pushed.files |= {name: b"x", MANIFEST: json.dumps(content).encode()}
        with pytest.raises(
            SharingError, match="me/mine has no valid run: .*is not a name of a run"
        ):
            hub.pull("me/mine", store)
        assert not any(name in asked for asked in pushed.asked)
    assert not store.root.exists()


def test_what_is_not_as_promised_is_refused(
    pushed: Server, hub: Hub, store: Store, fleet: RunFolder, demo: RunFolder
) -> None:
    name = "metrics/losses.parquet"
    files, good, config = pushed.files, pushed.files[name], demo.read("config.json")
    other = {**fleet.manifest.files, "config.json": FileEntry.of(config)}
    other_recipe = fleet.manifest.model_copy(update={"files": other}).to_bytes()
    damaged = f"no valid run: .*{name} is damaged"
    for change, sizes, reason in (
        ({name: good[:-1] + b"x"}, {}, damaged),
        ({name: good + b"x" * 100_000}, {}, f"{name} has .* bytes on the hub; its manifest says"),
        ({name: good + b"x" * 100_000}, {name: len(good)}, damaged),
        ({name: None}, {}, f"{name} has None bytes on the hub"),
        ({MANIFEST: b"{}"}, {}, "me/mine has no valid run: .*SHA-256 differs"),
        ({}, {MANIFEST: 2**30}, f"{MANIFEST} of me/mine is larger than"),
        ({"config.json": config, MANIFEST: other_recipe}, {}, "no valid run: .*manifest is of run"),
    ):
        pushed.files = {at: data for at, data in (files | change).items() if data is not None}
        pushed.sizes = sizes
        with pytest.raises(SharingError, match=reason):
            hub.pull("me/mine", store)
        assert not [*store.root.glob("[!.]*")]


def test_more_than_this_machine_holds_is_not_fetched(
    pushed: Server, hub: Hub, store: Store, fleet: RunFolder
) -> None:
    huge = FileEntry(sha256="0" * 64, size=2**60)
    entries = {**fleet.manifest.files, "metrics/losses.parquet": huge}
    pushed.promise(fleet.manifest.model_copy(update={"files": entries}))
    with pytest.raises(SharingError, match="the run has .* files of 1,152,9.* this machine takes"):
        hub.pull("me/mine", store)
    asked = {asked.partition("/")[2] for asked in pushed.asked if "resolve" in asked}
    assert asked == {f"me/mine/resolve/{COMMIT}/{MANIFEST}"}


def test_a_place_that_holds_something_else_is_left_alone(
    server: Server, hub: Hub, fleet: RunFolder
) -> None:
    server.files = {"model.safetensors": b"a language model", "README.md": b""}
    with pytest.raises(SharingError, match="me/mine holds model.safetensors, and no run"):
        hub.push(fleet, "me/mine")
    assert {*server.files} == {"model.safetensors", "README.md"}
    assert not hub.is_run("me/mine")


def test_a_place_or_a_revision_that_is_not_there_is_named(
    server: Server, hub: Hub, store: Store
) -> None:
    for server.lacks, place, reason in (
        ("RepoNotFound", "me/mine", "cannot look at me/mine: Repository Not Found for url: "),
        ("RevisionNotFound", "me/mine@v2", "cannot look at me/mine@v2: Revision Not Found for "),
    ):
        with pytest.raises(SharingError, match=reason):
            hub.pull(place, store)


def test_what_cannot_be_shared_is_told_in_one_line(
    server: Server, hub: Hub, fleet: RunFolder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fleet.locked(), pytest.raises(SharingError, match="is being trained: push it when"):
        hub.push(fleet, "me/mine")
    server.refuses = True
    with pytest.raises(SharingError, match="cannot push to me/mine: ") as refused:
        hub.push(fleet, "me/mine")
    assert str(refused.value).isprintable()
    for its in (hub, Hub("http://127.0.0.1:1")):
        with pytest.raises(SharingError, match="cannot look at me/mine: "):
            its.pull("me/mine", store)
    hub.token = None
    with pytest.raises(SharingError, match="not logged in to the hub: `hf auth login`"):
        hub.push(fleet, "me/mine")
    for place in ("mine", "a/b/c", "../x", "me/../x", "me/", "-/-", "a b/c"):
        with pytest.raises(SharingError, match="is not a place on a hub; expected OWNER/NAME"):
            check_place(place)
    for licence in ("a: b\nx", "Apache 2.0", ""):
        with pytest.raises(SharingError, match="is not a licence; expected the hub's name of one"):
            hub.push(fleet, "me/mine", licence)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        SharingError, match="not installed: python -m pip install 'huggingface_hub>="
    ):
        Hub()
