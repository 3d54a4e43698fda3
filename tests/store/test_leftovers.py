from pathlib import Path

import pytest

from hopscope.store.leftovers import strays


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


def test_a_folder_is_the_runs_own_once_its_manifest_names_a_file_in_it(tmp_path: Path) -> None:
    put(tmp_path, "counts/all.parquet", "counts/part-00000001.parquet")
    assert strays(tmp_path, set()).leftovers == ()
    assert strays(tmp_path, {"counts/all.parquet"}).leftovers == ("counts/part-00000001.parquet",)


def test_links_are_foreign_and_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "part-00000000-00000005.parquet")
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics").symlink_to(outside)
    put(run, "checkpoints/step-00000001.safetensors")
    (run / "checkpoints/step-00000002.safetensors").symlink_to(outside)
    found = strays(run, set())
    assert found.leftovers == ("checkpoints/step-00000001.safetensors",)
    assert found.foreign == ("checkpoints/step-00000002.safetensors", "metrics")


@pytest.mark.parametrize("name", OURS)
def test_what_is_committed_is_no_stray(tmp_path: Path, name: str) -> None:
    put(tmp_path, name)
    assert strays(tmp_path, {name}).leftovers == ()
