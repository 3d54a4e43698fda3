"""Runs are trained, listed, shown, compared, tagged, checked and removed: none hides another."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from calling import Patch, Said, Say
from stopping import with_losses

from hopscope.configs import Experiment, NgramExperiment, Retrieval, Training
from hopscope.errors import ConfigError
from hopscope.plots.progress import Pace
from hopscope.store import RunFolder, Store
from hopscope.training import train

RISE = ("rise", "rise_low", "rise_high")


def created(hops: int) -> str:
    return Store().create(Experiment(task=Retrieval(hops=hops))).name


def test_damage_hides_no_other_run_and_can_be_removed(
    root: Path, hopscope: Say, tiny: Experiment
) -> None:
    strange, damaged, whole = (
        train(tiny.model_copy(update={"seeds": (seed,)})).name for seed in range(3)
    )
    (root / "runs" / strange / "manifest.json").write_text("{}")
    path = root / "runs" / damaged / "metrics" / "losses.parquet"
    path.write_bytes(bytes(path.stat().st_size))
    code, out, err = hopscope("runs")
    assert code == 1
    assert whole in out
    assert all(name in err for name in (damaged, strange))
    assert err.count("\n") == 2
    before = Store().names()
    assert "would remove" in hopscope("rm", whole, "--dry-run")[1]
    assert Store().names() == before
    for name in (strange, damaged[-10:], whole):
        assert "removed" in hopscope("rm", name, "--yes")[1]
    assert Store().names() == []


def test_rm_takes_no_part_of_a_name(root: Path, hopscope: Say) -> None:
    name = created(1)
    for some in (name[:-1], name[-9:], "retrieval", ""):
        assert hopscope("rm", name, some)[0] == 2
    assert Store().names() == [name]
    code, out, _ = hopscope("rm", name, name, "--dry-run")
    assert (code, len(out.splitlines())) == (0, 1)


def test_show_says_which_file_is_missing(root: Path, hopscope: Say, tiny: Experiment) -> None:
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


def test_a_folder_is_a_run_wherever_it_lies(
    root: Path, said: Said, tiny: Experiment, monkeypatch: Patch
) -> None:
    path = train(tiny).folder.path
    monkeypatch.chdir(path.parent)
    for name in (f"./{path.name}", f"{path.name}/", f"../runs/{path.name}", str(path)):
        assert path.name in said("verify", name)
    monkeypatch.chdir(path)
    assert path.name in said("verify", "./")


def test_an_empty_store_names_the_command_for_that_store(root: Path, said: Said) -> None:
    assert said("runs").endswith("/runs: `hopscope train demo` makes one\n")
    line = "no runs in other: `hopscope train demo --store other` makes one\n"
    assert said("runs", "--store", "other") == line


def test_a_loss_is_told_of_the_hop_that_was_asked(root: Path, said: Said, tiny: Experiment) -> None:
    """A task may ask its last hop alone."""
    task = Retrieval(hops=5, chains=2, curriculum=False)
    name = train(tiny.model_copy(update={"task": task, "seeds": (1, 2)})).name
    (row,) = json.loads(said("show", name, "--json"))["results"]
    assert row["hop"] == 5
    out = said("sql", "select distinct split, hop from metrics order by all", "--json")
    assert [row["hop"] for row in json.loads(out)] == [5, 5]
    progress = Pace()
    progress.start(Store().find(name), 0)
    progress.advance(1, {"train": np.ones((2, 1), np.float32)})
    assert [name for name, _, _ in progress.hop_rows()] == ["hop 5"]
    words = ("--head", "0.0=uniform", "--examples", "8", "--json")
    assert [*json.loads(said("ablate", name, *words))[0]] == ["changed", "loss", "hop_5", *RISE]


def test_rm_by_tag_and_by_age(root: Path, hopscope: Say) -> None:
    old, new, other = created(1), created(2), created(3)
    Store().tag(old, "mine")
    Store().tag(new, "mine")
    os.utime(root / "runs" / old / "manifest.json", (1, 1))
    assert "rm asks before it removes 1 run: --yes answers" in hopscope("rm", old)[2]
    assert hopscope("rm", "--older-than", "999999w")[1] == "no run matches\n"
    assert hopscope("rm", "--older-than", "30d", "--dry-run")[1].split()[-1].endswith(old)
    assert hopscope("rm", "--tag", "mine", "--older-than", "1h", "--yes")[1].count("removed") == 1
    assert sorted(Store().names()) == sorted([new, other])
    assert hopscope("rm", "--tag", "mine", "--yes")[0] == 0
    assert Store().names() == [other]
    for words, line in {"--tag x": "no run has the tag", "--older-than 3": "such as 30d"}.items():
        code, _, err = hopscope("rm", *words.split(), "--yes")
        assert (code, line in err) == (2, True)


def test_a_tag_stands_where_a_run_is_asked_for(root: Path, said: Said) -> None:
    one, other = created(1), created(2)
    assert said("tag", one) == f"{one}: no tags\n"
    assert said("tag", f"runs/{one}", "mine", "first") == f"{one}: first, mine\n"
    assert said("show", "mine").splitlines()[-1].endswith(" UTC, tags: first, mine")
    assert said("verify", "mine")
    out = said("tag", other, "mine")
    assert out == f"{other}: mine\n2 runs have the tag mine, so it cannot stand for one run\n"
    said("tag", other, "mine", "--remove")
    assert said("tag", "mine", "first", "--remove") == f"{one}: mine\n"
    assert said("rm", "mine", "--dry-run") == f"would remove {Store().root / one}\n"
    assert said("rm", "mine", "--yes") == f"removed {Store().root / one}\n"
    assert (Store().names(), Store().tags()) == ([other], {})


def test_train_resume_show_and_verify(root: Path, hopscope: Say, said: Said) -> None:
    changes = "training.steps=6 training.batch=4 training.validation_examples=8 --threads 1"
    out = said("train", "--seeds", "1", "demo", *changes.split())
    assert re.search(r"hop 1 +\d\.\d+", out)
    (name,) = Store().names()
    for run in (name[-6:], f"runs/{name}"):
        assert "final loss" in said("resume", run)
    out = said("show", name, "--figure", "loss.svg")
    assert re.search(r"training\.steps +6 *\n", out)
    assert "checkpoints at steps 0, 6" in out
    assert (root / "loss.svg").exists()
    rows = said("sql", "select count(*) as rows from metrics", "--csv").split()
    assert rows == ["rows", str(2 * (6 + 7))]
    assert said("verify", name) == f"{name}: all 5 files are as committed\n"
    (root / "runs" / name / "checkpoints" / "step-00000006.safetensors").write_bytes(b"")
    code, _, err = hopscope("verify", name)
    assert code == 1
    assert "0 bytes, expected" in err


def test_a_training_begins_where_a_shorter_one_ended(root: Path, hopscope: Say, said: Said) -> None:
    flags = "train demo training.batch=4 training.warmup=0 --threads 1".split()
    flags += ["training.schedule=constant"]
    said(*flags, "training.steps=4")
    (short,) = Store().names()
    longer = (*flags, "training.steps=6", "--prolong", f"runs/{short}")
    code, _, err = hopscope(*longer, "--device", "cuda:7")
    assert (code, Store().names()) == (2, [short])
    assert "device is 'cuda:7', but torch sees no GPU: use --device cpu" in err
    same = (*flags, "training.steps=4", "--prolong", short[-6:])
    assert "is the run of this same recipe: to continue from it, change" in hopscope(*same)[2]
    out = said(*longer)
    assert "step 4 of 6" in out
    assert "final loss" in out
    assert len(Store().names()) == 2


def test_two_models_side_by_side(root: Path, said: Said, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    out = said("compare", "gallery/demo", "gallery/planted", "--figure", "both.svg")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for line in ("model.heads 4 1", "model.d_head - 192", "hop 1 learned at 404"):
        assert line in lines
    assert "value 2 → value 1 - 1.0" in lines
    assert any(line.endswith("in gallery/planted alone") for line in lines)
    assert any(line.startswith("Loss of each hop during training") for line in lines)
    assert (root / "both.svg").stat().st_size > 1_000
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for name in ("both.csv", "both.parquet"):
        said("compare", "gallery/demo", "gallery/planted", "--save", name)
    rows = pandas.read_parquet("both.parquet")
    assert rows[["hop", "run", "first_learned"]].values.tolist() == [
        ["hop 1", "gallery/demo", 404], ["hop 2", "gallery/demo", 595]
    ]  # fmt: skip
    pandas.testing.assert_frame_equal(pandas.read_csv("both.csv"), rows)


def test_all_that_a_table_needs_is_named_at_once(
    root: Path, said: Said, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("hopscope.cli.results.find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="need pandas and pyarrow: `pip install pandas pyarrow`"):
        said("compare", "gallery/demo", "gallery/planted", "--save", "both.parquet")


Runs = Callable[..., tuple[list[str], list[str]]]
Three = dict[str, RunFolder]


def made(hops: int, step: int, seeds: tuple[int, ...] = (0,), **more: bool) -> RunFolder:
    """A run of ten steps, of which some are done; its losses are 0.25."""
    recipe = Experiment(task=Retrieval(hops=hops), training=Training(steps=10), seeds=seeds)
    losses = np.full((step, len(seeds), hops), 0.25, np.float32)
    return with_losses(Store(), recipe, losses, **more)


@pytest.fixture
def three(root: Path) -> Three:
    """A complete run, a fleet that was stopped, and one that is damaged; begun in this order."""
    found = {"w": made(2, 10, complete=True), "f": made(1, 4, (0, 1)), "d": made(3, 4)}
    next(found["d"].path.glob("metrics/*")).write_bytes(b"")
    for age, letter in enumerate("dwf"):  # dates go another way
        when = 1_700_000_000 + 86_400 * age
        os.utime(found[letter].path / "manifest.json", (when, when))
    for place, folder in enumerate(found.values()):
        os.utime(folder.path / "config.json", (place, place))
    return found


@pytest.fixture
def runs(root: Path, hopscope: Say) -> Runs:
    """The lines that are printed, and what is said of what cannot be read."""

    def said(*words: str) -> tuple[list[str], list[str]]:
        code, out, err = hopscope("runs", *words)
        assert code == bool(err)
        return out.splitlines(), err.splitlines()

    return said


def test_a_row_says_all_of_a_run(three: Three, runs: Runs, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines, _ = runs()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[-1] == "size"  # no room is left for the course
    monkeypatch.setenv("COLUMNS", "160")
    whole = three["w"]
    Store().tag(whole.name, "baseline", "paper")
    (head, *rows), (told,) = runs()
    titles = "run state models training losses date size tags course"
    assert head.split() == titles.split()
    assert [row.split()[0] for row in rows] == [folder.name for folder in three.values()]
    size = sum(path.stat().st_size for path in whole.path.rglob("*") if path.is_file()) / 1e6
    first = f"10 1 0.250 0.250 2023-11-15 {size:.1f} MB baseline paper"
    assert rows[0].split()[1:-1] == first.split()
    assert rows[1].split()[1:8] == "4 of 10, stopped 2 0.250 2023-11-16".split()
    assert rows[2].split()[1] == "damaged"
    assert runs(three["d"].name)[0][0].split() == "run state date size".split()  # no losses
    assert f"{three['d'].name}/metrics/" in told
    first, fleet, damaged = json.loads("".join(runs("--json")[0]))
    assert (first["name"], first["state"], first["losses"]) == (whole.name, "complete", [0.25] * 2)
    assert (fleet["step"], fleet["steps"], fleet["models"]) == (4, 10, 2)
    assert (damaged["state"], damaged["step"], damaged["losses"]) == ("damaged", None, [])
    assert damaged["problem"]


def test_orders_and_filters(three: Three, runs: Runs) -> None:
    Store().tag(three["w"].name, "baseline")
    tags = Store().root / "tags.json"
    content = json.loads(tags.read_text())
    content["runs"][three["d"].name] = ["baseline"]  # it was whole when it was tagged
    tags.write_text(json.dumps(content))
    (three["f"].path / "notes.md").write_text("x" * 1_000_000)
    letters = {folder.name: letter for letter, folder in three.items()}
    for words, expected in {
        "--sort begun": "wfd",
        "--sort date": "dwf",
        "--sort state": "wdf",
        "--sort name": "fwd",
        "--state stopped": "f",
        "--state damaged": "d",
        "d1": "f",
        "baseline": "wd",
        "baseline --state complete": "w",
        "base": "",
        "--state in-training": "",
    }.items():
        lines, _ = runs(*words.split())
        assert "".join(letters.get(line.split()[0], "") for line in lines) == expected, words
    assert lines == [f"No run matches (3 in {Store().root})."]
    lines, _ = runs("--sort", "size")
    assert lines[-1].split()[0] == three["f"].name  # the largest is at the end


def test_settings_that_vary_are_columns(runs: Runs, tiny: Experiment, monkeypatch: Patch) -> None:
    monkeypatch.setenv("COLUMNS", "900")
    training = Training(steps=3, batch=4, lr=0.002)
    longer = tiny.model_copy(update={"training": training, "seeds": (5,)})
    for recipe in (tiny, longer):
        Store().create(recipe)
    bad = Store().create(tiny.model_copy(update={"seeds": (9,)}))
    (bad.path / "config.json").write_text("{")
    (head, *lines), _ = runs("--varies")
    titles = head.split()
    assert titles[:2] == ["run", "state"]
    assert {"lr", "steps", "batch", "seeds"} <= set(titles)
    assert not {"date", "size", "layers", "hops"} & set(titles)
    (of_longer,) = (line for line in lines if longer.run_name() in line)
    assert {"0.002", "[5]"} <= set(of_longer.split())
    Store().create(NgramExperiment())
    rows = json.loads("".join(runs("--varies", "--json")[0]))
    told = {row["name"]: row["settings"] for row in rows}
    assert told[bad.name] == {}
    assert told[tiny.run_name()]["training.lr"] == tiny.training.lr
    assert told[NgramExperiment().run_name()]["training.lr"] is None
