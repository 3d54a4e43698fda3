"""One run on disk: what is committed is read back, damage is found, and strangers' files stay."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.errors import RunDamaged
from hopscope.store import RunFolder, Store
from hopscope.store.leftovers import strays


@pytest.fixture
def run(store: Store, tiny: Experiment) -> RunFolder:
    folder = store.create(tiny)
    folder.commit(
        {"checkpoints/a.safetensors": b"weights", "metrics/b.parquet": b"numbers"}, step=3
    )
    return folder


def test_committed_files_are_read_back_and_dropped_ones_are_gone(run: RunFolder) -> None:
    again = RunFolder(run.path)
    assert again.read("checkpoints/a.safetensors") == b"weights"
    assert again.manifest.step == 3
    assert again.files("metrics/") == ["metrics/b.parquet"]
    assert again.recipe == run.recipe
    assert again.verify() == []
    run.commit({"checkpoints/c.safetensors": b"later"}, drop=("checkpoints/a.safetensors",))
    assert not (run.path / "checkpoints/a.safetensors").exists()
    assert RunFolder(run.path).files("checkpoints/") == ["checkpoints/c.safetensors"]


def test_damage_is_found_and_leftovers_are_swept(run: RunFolder) -> None:
    path = run.path / "checkpoints/a.safetensors"
    for content, text in (
        (b"weight", "6 bytes, expected 7"),
        (b"wEights", "its SHA-256 differs"),
        (None, "is missing"),
    ):
        path.unlink() if content is None else path.write_bytes(content)
        with pytest.raises(RunDamaged, match=text):
            run.read("checkpoints/a.safetensors")
        assert len(run.verify()) == 1
    path.write_bytes(b"weights")
    (run.path / "checkpoints" / ".b.safetensors.77.tmp").write_bytes(b"half")
    assert "in no manifest" in run.verify()[0]
    run.sweep_leftovers()
    assert run.verify() == []


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("something")


OURS = (
    "..circuit.json.4294967295.tmp.7.tmp",
    ".circuit.json.4294967295.tmp",
    ".config.json.123.tmp",
    ".manifest.json.1.tmp",
    "answers/part-00000025.jsonl",
    "checkpoints/.step-00000005.safetensors.77.tmp",
    "checkpoints/optimiser-00000005.safetensors",
    "metrics/losses.parquet",
    "metrics/part-00000000-00000005.parquet",
)
FOREIGN = (
    "analysis/.probe.safetensors.12.tmp",
    "analysis/probe.safetensors",
    "circuit.json",  # hopscope would call it so; but so would anybody
    "figures/a.svg",
    "metrics/.part.swp",
    "metrics/extra/part-00000000-00000005.parquet",
    "metrics/mine.txt",
    "notes.md",
    ".notes.md.12.tmp",
)


def test_only_what_is_named_as_hopscope_names_it_is_a_leftover(tmp_path: Path) -> None:
    put(tmp_path, *OURS, *FOREIGN, "manifest.json", ".lock", "config.json")
    found = strays(tmp_path, {"config.json"})
    assert found.leftovers == tuple(sorted(OURS))
    assert found.foreign == tuple(sorted(FOREIGN))
    for name in OURS:  # what is committed is no stray
        assert name not in strays(tmp_path, {"config.json", name}).leftovers


def test_a_folder_is_the_runs_own_once_its_manifest_names_a_file_in_it(tmp_path: Path) -> None:
    put(tmp_path, "counts/all.parquet", "counts/part-00000001.parquet")
    assert strays(tmp_path, set()).leftovers == ()
    assert strays(tmp_path, {"counts/all.parquet"}).leftovers == ("counts/part-00000001.parquet",)


def test_links_are_foreign_and_are_not_followed(tmp_path: Path) -> None:
    outside, run = tmp_path / "outside", tmp_path / "run"
    put(outside, "part-00000000-00000005.parquet")
    put(run, "checkpoints/step-00000001.safetensors")
    (run / "metrics").symlink_to(outside)
    (run / "checkpoints/step-00000002.safetensors").symlink_to(outside)
    found = strays(run, set())
    assert found.leftovers == ("checkpoints/step-00000001.safetensors",)
    assert found.foreign == ("checkpoints/step-00000002.safetensors", "metrics")
