"""One run on disk: what is committed is read back, damage is found, and strangers' files stay."""

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hopscope.configs import Experiment
from hopscope.errors import ConfigError, RunDamaged, RunMissing, StoreUnwritable
from hopscope.store import RunFolder, Store
from hopscope.store.manifest import FileEntry


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
    assert "not in the manifest" in run.verify()[0]
    with run.locked():  # whoever writes next
        assert run.verify() == []


def test_a_model_of_a_run_is_named_by_its_seed(store: Store, tiny: Experiment) -> None:
    fleet = store.create(tiny.replace(seeds=(3, 1)))
    assert [fleet.member(seed) for seed in (None, 3, 1)] == [0, 0, 1]
    with pytest.raises(ConfigError, match="seed is 0; .* has the seeds 3, 1"):
        fleet.member(0)


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("something")


OURS = (
    ".circuit.json.4294967295.tmp",
    ".config.json.123.tmp",
    ".manifest.json.1.tmp",
    "answers/part-00000025.jsonl",
    "checkpoints/.step-00000005.safetensors.77.tmp",
    "checkpoints/optimiser-00000005.safetensors",
    "metrics/losses.parquet",
    "metrics/part-00000000-00000005.parquet",
)
UNTRACKED = (
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


@pytest.fixture
def fresh(store: Store, tiny: Experiment) -> RunFolder:
    return store.create(tiny)


def test_only_what_is_named_as_hopscope_names_it_is_a_leftover(fresh: RunFolder) -> None:
    put(fresh.path, *OURS, *UNTRACKED, ".lock")
    assert fresh.leftovers() == sorted(OURS)
    assert fresh.untracked() == sorted(UNTRACKED)
    temporary = [name for name in sorted(OURS) if name.endswith(".tmp")]
    fresh.commit(dict.fromkeys({*OURS} - {*temporary}, b""))
    assert fresh.leftovers() == temporary


def test_a_folder_is_the_runs_own_once_its_manifest_names_a_file_in_it(fresh: RunFolder) -> None:
    put(fresh.path, "counts/part-00000001.parquet")
    assert fresh.leftovers() == []
    fresh.commit({"counts/all.parquet": b""})
    assert fresh.leftovers() == ["counts/part-00000001.parquet"]


def test_links_are_untracked_and_are_not_followed(fresh: RunFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "part-00000000-00000005.parquet")
    put(fresh.path, "checkpoints/step-00000001.safetensors")
    (fresh.path / "metrics").symlink_to(outside)
    (fresh.path / "checkpoints/step-00000002.safetensors").symlink_to(outside)
    assert fresh.leftovers() == ["checkpoints/step-00000001.safetensors"]
    assert fresh.untracked() == ["checkpoints/step-00000002.safetensors", "metrics"]
    with pytest.raises(StoreUnwritable, match="a symbolic link"):
        fresh.commit({"metrics/losses.parquet": b"ours"})


NAMES = ("circuit.json", "explorer/maps.safetensors")
OLD, NEW = b"the first", b"another, longer"


class CutOffError(Exception):
    pass


def cut(own: Callable[..., Any], calls: Iterator[int], last: int) -> Callable[..., Any]:
    """A call of the system that is not made, nor any after it, from a number on."""

    def instead(*given: Any, **named: Any) -> Any:
        if next(calls) >= last:
            raise CutOffError
        return own(*given, **named)

    return instead


def seen(run: RunFolder) -> bytes:
    """What somebody finds who comes now, without a lock."""
    found = RunFolder(run.path)
    (content,) = {found.read(name) for name in NAMES}
    assert found.damage() == {}
    assert found.untracked() == []
    (listed,), problems = Store(run.path.parent).listed()
    assert (listed.problem, problems) == ("", [])
    assert [path.read_bytes() for path in found.paths(NAMES[0], verify=True)] == [content]
    return content


def replace(run: RunFolder, by: bytes) -> None:
    with run.locked():
        run.commit(dict.fromkeys(NAMES, by))


def test_a_commit_that_replaces_files_may_be_cut_off_at_any_call_of_the_system(
    fresh: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers find all old files or all new ones; and then the same commit is made whole."""
    replace(fresh, OLD)
    found, whole = [], False
    for last in count(1):
        calls = count(1)
        with monkeypatch.context() as patch:
            for call in ("fsync", "replace", "rename", "unlink"):
                patch.setattr(os, call, cut(getattr(os, call), calls, last))
            try:
                replace(fresh, NEW)
                whole = True
            except CutOffError:
                pass
        found.append(seen(fresh))
        if whole:
            break
        replace(fresh, OLD)
        assert seen(fresh) == OLD
        assert fresh.verify() == []
    turned = found.index(NEW)
    assert 0 < turned < len(found) - 1  # before its manifest, and after it
    assert found == [OLD] * turned + [NEW] * (len(found) - turned)
    assert fresh.verify() == []


def test_who_has_read_the_manifest_before_reads_the_new_file(fresh: RunFolder) -> None:
    replace(fresh, OLD)
    before = RunFolder(fresh.path)
    replace(fresh, NEW)
    assert before.read(NAMES[0]) == NEW
    assert before.manifest.place(NAMES[0]) == FileEntry.of(NEW).replacing(NAMES[0]).at
    assert before.manifest.copied().places == {*before.manifest.files}
    fresh.remove()
    with pytest.raises(RunMissing, match="was removed meanwhile"):
        before.read(NAMES[0])
