"""What is opened as a run is one: whatever was forged is found before anything else is read."""

import json
from inspect import unwrap
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import CircuitError, ConfigError, RunDamaged, RunMismatch
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name, checkpoint_steps, chosen_step
from hopscope.store.manifest import (
    MANIFEST,
    FileEntry,
    Manifest,
    Provenance,
    _digest,
    read_manifest,
)

ENTRY = FileEntry.of(b"x")
PROVENANCE = Provenance(first=0, threads=2, kernels="torch", torch="2.13.0", processor="some")
NO_NAMES = (
    "../other/metrics/losses.parquet", "/etc/passwd", "metrics/../../x.parquet", "",
    "metrics//losses.parquet", "metrics/losses.parquet\n", "metrics/a/b.parquet", "..",
    "manifest.json", ".lock", "Metrics/x.parquet", "metrics/part-1.parquet", "x\0.json",
    "metrics\\losses.parquet", "checkpoints/step-abc-1.safetensors", "a" * 5_000,
)  # fmt: skip
NO_VALUES = (
    {"step": -1}, {"step": 2**40}, {"seconds": "long"}, {"files": []}, {"self": 1},
    {"files": {"config.json": {"sha256": "abc", "size": 1}}},
    {"files": {"config.json": {"sha256": "a" * 64, "size": -1}}},
    {"computed": [{"first": 0}]}, {"name": None},
    {"files": {"circuit.json": {"sha256": "a" * 64, "size": 1, "at": "../x.json"}}},
)  # fmt: skip
NO_MANIFESTS = (b"", b"[]", b"{}", b'{"format": "x"}', b'{"name": 3}', b"\xff", b"[" * 200_000)


def changed(manifest: Manifest, **changes: object) -> bytes:
    """What somebody writes who knows how a manifest is checked."""
    content = json.loads(manifest.to_bytes()) | changes
    del content["check"]
    content["check"] = _digest(content)
    return json.dumps(content).encode()


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    names = (
        "config.json", "circuit-seed-3-step-500.json", "metrics/part-00000000-00000500.parquet",
        "checkpoints/step-00000500.safetensors", "answers/all.jsonl",
    )  # fmt: skip
    files = dict.fromkeys(names, ENTRY)
    manifest = Manifest(name="run", step=500, files=files, computed=(PROVENANCE,))
    (tmp_path / MANIFEST).write_bytes(manifest.to_bytes())
    assert read_manifest(tmp_path) == manifest
    assert Manifest(name="run", files={"circuit.json": ENTRY.replacing("circuit.json")}).places == {
        f"circuit-{int(ENTRY.sha256[:8], 16):010d}.json"
    }


def test_a_forged_folder_is_not_opened(store: Store, tiny: Experiment) -> None:
    run, other = store.create(tiny), store.create(Experiment())
    own = run.manifest
    theirs = other.manifest.model_copy(update={"name": run.name})
    rows: list[tuple[bytes, type[Exception], str]] = [
        *((each, RunDamaged, "is not a manifest|its SHA-256") for each in NO_MANIFESTS),
        *((changed(own, **each), RunDamaged, "is not a manifest") for each in NO_VALUES),
        *(
            (changed(own, files={name: ENTRY.model_dump()}), RunDamaged, "not a name of a run")
            for name in NO_NAMES
        ),
        (changed(own, format=4, news=1), RunMismatch, "format 4; this hopscope reads format 3:"),
        (json.dumps({**json.loads(own.to_bytes()), "step": 1}).encode(), RunDamaged, "its SHA-256"),
        (changed(own, files={}), RunDamaged, "has no committed config.json"),
        (theirs.to_bytes(), RunDamaged, "config.json is damaged"),
    ]
    for content, error, text in rows:
        (run.path / MANIFEST).write_bytes(content)
        with pytest.raises(error, match=text) as caught:
            RunFolder(run.path)
        assert len(str(caught.value)) < 800, content[:99]
        assert "\n" not in str(caught.value), content[:99]
    (run.path / "config.json").write_bytes((other.path / "config.json").read_bytes())
    (run.path / MANIFEST).write_bytes(theirs.to_bytes())
    (line,) = RunFolder(run.path).verify()
    assert "restore the file that was changed" in line
    with pytest.raises(RunMismatch, match="its folder was renamed"):
        store.create(tiny)
    with (run.path / MANIFEST).open("wb") as file:
        file.truncate(30 * 2**30)  # sparse: it takes no room
    with pytest.raises(RunDamaged, match="32,212,254,720 bytes, expected at most"):
        RunFolder(run.path)


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    whole = Manifest(name="run", step=500, seconds=1.5, files={"config.json": ENTRY}).to_bytes()
    for place in range(len(whole) - 1):  # the line's end means nothing
        flipped = bytearray(whole)
        flipped[place] ^= 1
        (tmp_path / MANIFEST).write_bytes(flipped)
        try:
            found = read_manifest(tmp_path)
        except (RunDamaged, RunMismatch):
            continue
        assert found.to_bytes() == whole  # a blank that became another blank


def test_steps_of_checkpoints_are_those_of_committed_names(store: Store, tiny: Experiment) -> None:
    folder = store.create(tiny)
    with pytest.raises(CircuitError, match="has no checkpoint: `hopscope resume"):
        chosen_step(folder)
    folder.commit({checkpoint_name(step): b"" for step in (200, 5)})
    assert checkpoint_steps(folder) == [5, 200]
    assert [chosen_step(folder, step) for step in (None, 5)] == [200, 5]
    for step, line in ((8, "step is 8; .* the nearest is 5"), (5.0, r"step is 5\.0; expected a")):
        with pytest.raises(ConfigError, match=line):
            unwrap(chosen_step)(folder, step)
    folder.commit({"checkpoints/step-00000005-00000006.safetensors": b""})
    with pytest.raises(RunDamaged, match=r"names checkpoints/step-0.*, expected checkpoints/step-"):
        checkpoint_steps(folder)
