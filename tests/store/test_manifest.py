import json
from pathlib import Path

import pytest

from hopscope.errors import RunDamaged, RunTooNew
from hopscope.store.manifest import MANIFEST, FileEntry, Manifest, Stretch, read_manifest

ENTRY = FileEntry.of(b"x")
STRETCH = Stretch(first=0, threads=2, kernels="torch", torch="2.13.0", processor="some")


def written(folder: Path, **changes: object) -> Path:
    content = json.loads(Manifest(name="run").to_bytes()) | changes
    del content["check"]
    (folder / MANIFEST).write_text(json.dumps(content))
    return folder


def test_it_comes_back_as_it_was(tmp_path: Path) -> None:
    files = {
        "config.json": ENTRY,
        "circuit-seed-3-step-500.json": ENTRY,
        "metrics/part-00000000-00000500.parquet": ENTRY,
        "checkpoints/step-00000500.safetensors": ENTRY,
        "answers/all.jsonl": ENTRY,
    }
    manifest = Manifest(name="run", step=500, files=files, computed=(STRETCH,))
    (tmp_path / MANIFEST).write_bytes(manifest.to_bytes())
    assert read_manifest(tmp_path) == manifest


def test_the_first_format_is_read(tmp_path: Path) -> None:
    content = json.loads(Manifest(name="run").to_bytes()) | {"format": 1}
    del content["computed"], content["check"]
    (tmp_path / MANIFEST).write_text(json.dumps(content))
    assert read_manifest(tmp_path).computed == ()


@pytest.mark.parametrize(
    "name",
    [
        "../other/metrics/losses.parquet", "/etc/passwd", "metrics/../../x.parquet", "",
        "metrics//losses.parquet", "metrics/losses.parquet\n", "metrics/a/b.parquet", "..",
        "manifest.json", ".lock", "Metrics/x.parquet", "metrics/part-1.parquet", "x\0.json",
        "metrics\\losses.parquet", "checkpoints/step-abc-1.safetensors", "a" * 5_000,
    ],
)  # fmt: skip
def test_a_name_that_no_file_of_a_run_has_is_damage(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunDamaged, match="no file of a run is called so") as caught:
        read_manifest(written(tmp_path, files={name: ENTRY.model_dump()}))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "changes",
    [
        {"step": -1}, {"step": 2**40}, {"seconds": "long"}, {"files": []}, {"self": 1},
        {"files": {"config.json": {"sha256": "abc", "size": 1}}},
        {"files": {"config.json": {"sha256": "a" * 64, "size": -1}}},
        {"computed": [{"first": 0}]}, {"format": 0}, {"name": None},
    ],
)  # fmt: skip
def test_values_that_make_no_sense_are_damage(tmp_path: Path, changes: dict[str, object]) -> None:
    with pytest.raises(RunDamaged, match=r"is not a manifest \(.*restore or remove the run"):
        read_manifest(written(tmp_path, **changes))


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    whole = Manifest(name="run", step=500, seconds=1.5, files={"config.json": ENTRY}).to_bytes()
    for place in range(len(whole) - 1):  # the line's end means nothing
        flipped = bytearray(whole)
        flipped[place] ^= 1
        (tmp_path / MANIFEST).write_bytes(flipped)
        try:
            found = read_manifest(tmp_path)
        except (RunDamaged, RunTooNew):
            continue
        assert found.to_bytes() == whole  # a blank that became another blank


def test_nesting_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("[" * 200_000)
    with pytest.raises(RunDamaged, match="nested too deeply"):
        read_manifest(tmp_path)


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / MANIFEST).open("wb") as file:
        file.truncate(30 * 2**30)  # sparse: it takes no room
    with pytest.raises(RunDamaged, match="32,212,254,720 bytes, expected at most"):
        read_manifest(tmp_path)
