"""Runs are shown, tagged, checked and removed: no damage of one hides another."""

import json
from pathlib import Path

from reproducing import Said, Say

from hopscope.configs import Experiment, Retrieval
from hopscope.store import Store
from hopscope.store.manifest import FileEntry
from hopscope.training import train


def created(hops: int) -> str:
    return Store().create(Experiment(task=Retrieval(hops=hops))).name


def test_a_run_that_cannot_be_read_hides_no_other_and_can_be_removed(
    root: Path, hopscope: Say, tiny: Experiment
) -> None:
    strange, damaged, whole = (
        train(tiny.model_copy(update={"seeds": (seed,)})).name for seed in range(3)
    )
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
    name = created(1)
    for part in (name[:-1], name[-9:], "retrieval", ""):
        assert hopscope("rm", name, part)[0] == 2
    assert Store().names() == [name]
    code, out, _ = hopscope("rm", name, name, "--dry-run")
    assert (code, len(out.splitlines())) == (0, 1)


def test_show_says_which_file_of_a_run_is_missing(
    root: Path, hopscope: Say, tiny: Experiment
) -> None:
    run = train(tiny)
    gone = run.folder.path / "checkpoints" / "step-00000000.safetensors"
    gone.unlink()
    (Store().root / "tags.json").write_text("{")
    code, out, err = hopscope("show", run.folder.name)
    assert code == 0
    assert "damaged, last commit" in out
    assert f"{gone} is missing: restore it from a copy, or `hopscope rm {run.name}`" in err
    assert "tags.json holds no tags" in err
    assert err.count("\n") == 2


def test_a_loss_is_told_of_the_hop_that_was_asked(root: Path, said: Said, tiny: Experiment) -> None:
    task = Retrieval(hops=5, chains=2, curriculum=False)
    for seeds in ((0,), (1, 2)):
        name = train(tiny.model_copy(update={"task": task, "seeds": seeds})).name
        (row,) = json.loads(said("show", name, "--json"))["results"]
        assert row["hop"] == 5
    out = said("sql", "select distinct split, hop from metrics order by all", "--json")
    assert [row["hop"] for row in json.loads(out)] == [5, 5]


def test_a_tag_stands_where_a_run_is_asked_for(root: Path, said: Said) -> None:
    one, other = created(1), created(2)
    assert said("tag", one) == f"{one}: no tags\n"
    assert said("tag", one, "mine", "first") == f"{one}: first, mine\n"
    assert said("show", "mine").splitlines()[-1].endswith(" UTC, tags: first, mine")
    for words in (["show", "mine", "--config"], ["verify", "mine"], ["tag", "mine"]):
        said(*words)
    out = said("tag", other, "mine")
    assert out == f"{other}: mine\nmine is the tag of 2 runs: it names none of them alone\n"
    said("tag", other, "mine", "--remove")
    assert said("tag", "mine", "first", "--remove") == f"{one}: mine\n"
    assert said("rm", "mine", "--dry-run") == f"would remove {Store().root / one}\n"
    assert said("rm", "mine") == f"removed {Store().root / one}\n"
    assert Store().names() == [other]
    assert Store().tags() == {}
