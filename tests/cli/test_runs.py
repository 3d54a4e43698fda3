"""Runs are listed, shown, checked and removed: no damage of one hides another."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.configs import Experiment, MarkovExperiment, Retrieval, Training
from hopscope.store import Store
from hopscope.store.manifest import FileEntry
from hopscope.training import train

Say = Callable[..., tuple[int, str, str]]


def test_a_run_that_cannot_be_read_hides_no_other(root: Path, hopscope: Say) -> None:
    flags = "--training.steps 2 --training.batch 4 --training.validation-examples 8 --threads 1"
    for seed in ("0", "1", "2"):
        hopscope("train", "demo", *flags.split(), "--seeds", seed)
    strange, damaged, whole = Store().names()
    config = root / "runs" / strange / "config.json"
    text = config.read_text().replace('"seeds":[0]', '"seeds":[-1]')
    config.write_text(text)
    manifest = root / "runs" / strange / "manifest.json"
    entry = json.loads(manifest.read_text())
    entry["files"]["config.json"] = json.loads(FileEntry.of(text.encode()).model_dump_json())
    del entry["check"]
    manifest.write_text(json.dumps(entry))
    with (root / "runs" / damaged / "metrics" / "losses.parquet").open("ab") as file:
        file.write(b"more")
    code, out, err = hopscope("runs")
    assert code == 1
    assert whole in out
    assert len(err.splitlines()) == 2
    assert f"{config} describes no run" in err
    assert f"{damaged}/metrics/losses.parquet is damaged" in err
    before = Store().names()
    assert "would remove" in hopscope("rm", whole, "--dry-run")[1]
    assert Store().names() == before
    for name in (strange, damaged[-10:], whole):
        assert "removed" in hopscope("rm", name)[1]
    assert Store().names() == []


def test_rm_takes_no_part_of_a_name(root: Path, hopscope: Say) -> None:
    flags = "--training.steps 2 --training.batch 4 --training.validation-examples 8 --threads 1"
    hopscope("train", "demo", *flags.split())
    (name,) = Store().names()
    for part in (name[:-1], name[-9:], "retrieval", ""):
        assert hopscope("rm", name, part)[0] == 2
    assert Store().names() == [name]
    code, out, _ = hopscope("rm", name, name, "--dry-run")
    assert (code, len(out.splitlines())) == (0, 1)
    code, _, err = hopscope("rm", "gallery/demo")
    assert code == 2
    assert "read-only" in err


def test_unreadable_runs_are_listed_as_such(root: Path, hopscope: Say, tiny: Experiment) -> None:
    train(tiny)
    bad = Store().create(tiny.model_copy(update={"seeds": (9,)}))
    (bad.path / "manifest.json").write_text("{}")
    code, out, err = hopscope("runs")
    assert code == 1
    assert tiny.run_name() in out
    assert "is not a manifest" in err


def test_show_says_which_file_of_a_run_is_missing(
    root: Path, hopscope: Say, tiny: Experiment
) -> None:
    run = train(tiny)
    gone = run.folder.path / "checkpoints" / "step-00000000.safetensors"
    gone.unlink()
    code, out, err = hopscope("show", run.folder.name)
    assert code == 0
    assert "damaged, last commit" in out
    assert err == (
        f"hopscope: {gone} is missing: restore it from a copy, or `hopscope rm {run.folder.name}` "
        "and train again\n"
    )


def test_settings_that_vary_have_a_column_each(
    root: Path, hopscope: Say, tiny: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "900")
    longer = tiny.model_copy(
        update={"training": Training(steps=3, batch=4, lr=0.002), "seeds": (5,)}
    )
    for recipe in (tiny, longer):
        Store().create(recipe)
    bad = Store().create(tiny.model_copy(update={"seeds": (9,)}))
    (bad.path / "config.json").write_text("{")
    code, out, _ = hopscope("runs", "--varies")
    assert code == 1
    head, *lines = out.splitlines()
    titles = head.split()
    assert titles[:2] == ["run", "state"]
    assert {"lr", "steps", "batch", "seeds"} <= set(titles)
    assert not {"date", "size", "layers", "hops"} & set(titles)
    (of_longer,) = (line for line in lines if longer.run_name() in line)
    assert {"0.002", "[5]"} <= set(of_longer.split())

    out = hopscope("runs", tiny.run_name(), "--varies")[1]
    assert out.split()[:2] == ["run", "state"]
    assert "lr" not in out.split()

    Store().create(MarkovExperiment())
    told = {
        row["name"]: row["settings"]
        for row in json.loads(hopscope("runs", "--varies", "--json")[1])
    }
    assert told[bad.name] == {}
    assert told[tiny.run_name()]["training.lr"] == tiny.training.lr
    assert told[MarkovExperiment().run_name()]["training.lr"] is None


@pytest.mark.parametrize("seeds", [(0,), (1, 2)])
def test_a_loss_is_told_of_the_hop_that_was_asked(
    root: Path, hopscope: Say, tiny: Experiment, seeds: tuple[int, ...]
) -> None:
    task = Retrieval(hops=5, chains=2, curriculum=False)
    train(tiny.model_copy(update={"task": task, "seeds": seeds}))
    _, out, _ = hopscope("sql", "select distinct split, hop from metrics order by all", "--json")
    assert [row["hop"] for row in json.loads(out)] == [5, 5]
    (run,) = Store().names()
    (row,) = json.loads(hopscope("show", run, "--json")[1])["results"]
    assert row["hop"] == 5
