"""`hopscope reproduce`: from runs to tables and figures, and on where it or a shorter one ended."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calling import End, Patch, Say, ends, registry, watcher
from musat_rows import loss_row

from hopscope.cli.reproduce import go_on_from_shorter
from hopscope.cli.workers import carried_out
from hopscope.configs import Experiment, Recipe
from hopscope.errors import Interrupted, NotLearned
from hopscope.papers.musat.recipes import over_seeds, short_over_seeds
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.runs import Stop
from hopscope.store import RunFolder, Store
from hopscope.training import train
from hopscope.training.prolong import goes_on
from hopscope.workers import Here, Outcome, carry_out

Recipes = tuple[Recipe, ...]
Experiments = tuple[Experiment, ...]


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_depth_is_computed_kept_and_drawn_and_drawn_again(say: Say) -> None:
    words = ("musat/depth", "--protocol", "smoke", "--threads", "1")
    drawn = [Path(f"found/musat/depth-{name}.svg") for name in ("layers", "shared")]
    told = [*(f"figure: {path}" for path in drawn), "overview: found/README.md"]
    code, out, err = say(*words)
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == ["results: found/musat/depth.jsonl", *told]
    assert "musat/theorem-1" in Path("found/README.md").read_text()
    table = PAPERS.results(Path("found")).table("musat/depth")
    assert (table.protocol, table.remark, len(table.rows)) == ("smoke", "fewer hops", 13)
    assert "1 threads" in table.machine
    before = [path.read_bytes() for path in (*drawn, Path("found/musat/depth.jsonl"))]
    for path in (*drawn, Path("found/README.md")):
        path.unlink()
    code, out, err = say("--draw")  # of all targets, those that are measured
    assert (code, err, out.splitlines()) == (0, "", told)
    assert [path.read_bytes() for path in (*drawn, Path("found/musat/depth.jsonl"))] == before
    assert say(*words)[0] == 0
    assert not Path("kept").exists()  # it is computed, without runs
    Path("found/musat/depth.jsonl").write_text("{}\n")
    code, _, err = say("musat/depth", "--draw")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("hopscope: found/musat/depth.jsonl")


def test_what_is_not_complete_is_drawn_of_the_best_protocol(say: Say) -> None:
    results = PAPERS.results(Path("found"))
    target, figure = "musat/fig4-nonic-seeds", Path("found/musat/fig4-nonic-seeds-layers.svg")
    measured: list[tuple[Protocol, float]] = [("smoke", 0.9), ("full", 0.7)]
    drawn = []
    for protocol, loss in measured:
        row = loss_row(1, [loss] * 3, hops=3).model_copy(update={"run": "seed-0"})
        results.save_part(Table(target, protocol, (row,), wanted=16))
        assert say(target, "--draw")[0] == 0
        drawn.append(figure.read_bytes())
    assert drawn[0] != drawn[1]
    results.part_path(target, "smoke").unlink()
    say(target, "--draw")
    assert figure.read_bytes() == drawn[1]
    assert not Path("kept").exists()


def test_targets_are_listed_and_trained_once(say: Say, two: Registry, recipes: Recipes) -> None:
    head, row = say("--list", papers=two)[1].splitlines()
    assert head.split() == "target shows protocol runs there are of measured".split()
    assert row.split("  ")[0] == "musat/two"
    assert re.search(r"reduced +0 +2 +not yet", row)
    assert not Path("kept").exists()
    code, out, _ = say("musat/two", "--time-limit", "1e-9", papers=two)
    assert code == 75
    assert "0 of 2 runs are complete and measured; the same command goes on" in out
    assert not Path("found/musat").exists()
    code, out, _ = say("musat", papers=two)
    assert code == 0
    assert "musat/two, reduced protocol: two of them" in out
    first = Path("found/musat/two.jsonl").read_bytes()
    assert json.loads(first.splitlines()[0])["remark"] == "two instead of all"
    assert len(first.splitlines()) == 3
    out = say("--list", "--protocol", "full", papers=two)[1]
    assert re.search(r"reduced +2 +2 +reduced", out)
    code, out, _ = say("musat/two", papers=two)
    assert code == 0
    assert not any(recipe.run_name() in out for recipe in recipes)
    assert Path("found/musat/two.jsonl").read_bytes() == first
    out = say("--list")[1]
    assert all(known.name in out for known in PAPERS.targets.values())
    assert "chen" not in say("musat/fig4", "--list")[1]


def test_a_sweep_whose_time_is_over_goes_on(
    say: Say, two: Registry, recipes: Recipes, monkeypatch: Patch
) -> None:
    clock = Clock()
    monkeypatch.setattr("hopscope.runs.stop.time", clock)

    def pass_ten_seconds(*_: object) -> None:
        clock.now += 10

    shown = watcher(advance=pass_ten_seconds)
    monkeypatch.setattr("hopscope.cli.display.display", lambda: shown)
    words = ("musat/two", "--time-limit", "2.9")  # 174 seconds: 12 steps and 6
    code, out, err = say(*words, papers=two)
    assert (code, err) == (75, "")
    part = Path("found/musat/two.reduced.part.jsonl")
    assert (f"\n1 of 2 runs are complete and measured ({part}); the same command goes on\n") in out
    assert "1 of 2 runs so far; two instead of all" in Path("found/README.md").read_text()
    assert Store("kept").create(recipes[1]).manifest.step == 6
    code, out, _ = say(*words, papers=two)
    assert code == 0
    assert "results: found/musat/two.jsonl" in out
    assert len(two.results(Path("found")).table("musat/two").rows) == 2
    assert not part.exists()


def test_what_is_complete_is_measured_first(
    say: Say, two: Registry, recipes: Recipes, monkeypatch: Patch
) -> None:
    measured: list[tuple[str, ...]] = []

    def look(*_: object) -> None:
        """What is measured when a training begins."""
        part = Path("found/musat/two.reduced.part.jsonl")
        rows = part.read_text().splitlines()[1:] if part.is_file() else []
        measured.append(tuple(json.loads(row)["run"] for row in rows))

    monkeypatch.setattr("hopscope.cli.display.display", lambda: watcher(start=look))
    first, second = (recipe.run_name() for recipe in recipes)
    for there, expected in (((), [(), (first,)]), (recipes[1:], [(second,)])):
        for folder in ("kept", "found"):
            shutil.rmtree(folder, ignore_errors=True)
        carry_out(there, "kept", workers=Here(threads=1))
        measured.clear()
        assert say("musat/two", papers=two)[0] == 0
        assert measured == expected


@pytest.mark.slow
def test_runs_of_workers_are_measured_meanwhile(
    say: Say, target: Target, monkeypatch: Patch
) -> None:
    measured: list[str] = []
    by_then: list[int] = []

    def noted(folder: RunFolder, protocol: Protocol) -> list[End]:
        measured.append(folder.name)
        return ends(folder, protocol)

    def watched(*of: Any) -> Outcome:
        outcome = carried_out(*of)
        by_then.append(len(measured))
        return outcome

    monkeypatch.setattr("hopscope.cli.reproduce.carried_out", watched)
    papers = registry(replace(target, measure=noted))
    assert say("musat/two", "--workers", "1", papers=papers)[0] == 0
    assert by_then == [2]
    assert len(set(measured)) == len(measured) == 2


def test_a_sweep_goes_on_where_another_machine_was(
    say: Say, two: Registry, recipes: Recipes
) -> None:
    assert say("musat/two", papers=two)[0] == 0
    results = two.results(Path("found"))
    whole = results.table("musat/two")
    results.path("musat/two").unlink()
    for last in (False, True):
        shutil.rmtree("kept")
        elsewhere = tuple(row for row in whole.rows if (row == whole.rows[-1]) == last)
        results.save_part(replace(whole, rows=elsewhere, machine="a faster one"))
        assert re.search(r"reduced +1 +2 ", say("--list", papers=two)[1])
        code, out, _ = say("musat/two", papers=two)
        assert code == 0
        assert "1 of 2 runs are measured already" in out
        assert Store("kept").names() == [recipes[not last].run_name()]
        table = results.table("musat/two")
        assert table.rows == whole.rows
        assert table.machine == f"a faster one; {whole.machine}"
        assert results.parts("musat/two") == []


def test_better_results_are_in_the_way_at_once(say: Say, target: Target, two: Registry) -> None:
    better = two.results(Path("found")).save(Table(target.name, "full", (End(loss=0.0),)))
    other = Target("musat/one", "computed", (End,), compute=lambda protocol: [End(loss=1.0)])
    both = registry(other, target)
    before = better.read_bytes()
    code, out, err = say("musat/two", papers=both)
    assert (code, out) == (2, "")
    assert "found/musat/two.jsonl holds the full protocol, which reduced would replace" in err
    assert better.read_bytes() == before
    assert not Path("kept").exists()
    code, out, _ = say("musat", papers=both)
    assert code == 0
    assert "musat/two: measured already, by a better protocol" in out
    assert better.read_bytes() == before
    assert both.results(Path("found")).has("musat/one")


def test_results_that_cannot_be_written_are_one_line(say: Say, two: Registry) -> None:
    for path, line, trained in (
        ("found", "cannot write found/README.md: ", False),
        ("found/README.md", "found/README.md is not a page of hopscope's, and would be ", False),
        ("found/musat", "cannot write found/musat/two.reduced.part.jsonl: ", True),
    ):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("# mine\n")
        code, _, err = say("musat/two", papers=two)
        assert (code, err.count("\n")) == (2, 1)
        assert err.startswith(f"hopscope: {line}")
        assert Path(path).read_text() == "# mine\n"
        assert bool(Store("kept").names()) == trained  # which is kept
        Path(path).unlink()


def test_what_fails_loses_nothing_else(say: Say, target: Target, recipes: Recipes) -> None:
    def fail(protocol: Protocol) -> list[End]:
        raise NotLearned("there is no theory")

    def some(folder: RunFolder, protocol: Protocol) -> list[End]:
        if folder.name == recipes[0].run_name():
            raise NotLearned("the model learned nothing")
        return ends(folder, protocol)

    one = Target("musat/one", "no use", (End,), compute=fail)
    papers = registry(one, replace(target, measure=some))
    code, out, err = say("musat", papers=papers)
    assert code == 2
    assert err.splitlines() == [
        "hopscope: musat/one: there is no theory",
        "hopscope: musat/two: the model learned nothing",
    ]
    assert "1 of 2 runs are complete and measured" in out
    assert "overview: found/README.md" in out
    results = papers.results(Path("found"))
    assert results.part("musat/two", "reduced").runs == (recipes[1].run_name(),)
    assert say("musat/two", papers=registry(target))[0] == 0
    assert len(results.table("musat/two").rows) == 2


def test_what_cannot_be_read_stops_no_other_target(
    say: Say, two: Registry, recipes: Recipes
) -> None:
    assert say("musat/two", papers=two)[0] == 0
    (Path("kept") / recipes[0].run_name() / "manifest.json").write_text("{}")
    Path("found/musat/two.full.part.jsonl").write_text("{}\n")
    code, out, _ = say("--list", papers=two)
    assert code == 0
    assert re.search(r"reduced +1 +2 +reduced", out)
    assert say("musat/depth", "--protocol", "smoke", "--threads", "1")[0] == 0


def content(folder: RunFolder) -> Mapping[str, bytes]:
    return {name: folder.read(name) for name in folder.manifest.files}


def begin(experiment: Experiment) -> None:
    """A training that was stopped before its first step."""
    stop = Stop()
    stop.ask("enough")
    with pytest.raises(Interrupted):
        train(experiment, Path("kept"), stop=stop)


def longer(recipe: Recipe, **changes: object) -> Experiment:
    assert isinstance(recipe, Experiment)
    training = recipe.training.model_copy(update={"steps": 30, **changes})
    return recipe.model_copy(update={"training": training})


@pytest.fixture
def full(recipes: Recipes) -> Experiments:
    return tuple(map(longer, recipes))


@pytest.fixture
def papers(target: Target, full: Recipes, say: Say) -> Registry:
    """The target, with a longer protocol beside its own, whose runs there are."""
    known = registry(replace(target, recipes={**target.recipes, "full": lambda: full}))
    assert say("musat/two", papers=known)[0] == 0
    return known


def test_what_a_lesser_protocol_trained_is_not_trained_again(
    say: Say, papers: Registry, recipes: Recipes, full: Experiments
) -> None:
    shorter = {name: content(Store("kept").find(name)) for name in Store("kept").names()}
    code, out, err = say("musat/two", "--protocol", "full", papers=papers)
    assert (code, err) == (0, "")
    for short, long in zip(recipes, full, strict=True):
        name = long.run_name()
        assert f"{name} goes on from {short.run_name()}" in out
        assert f"{name}: step 12 of 30" in out
        alone = train(long, Path("alone")).folder
        assert content(Store("kept").find(name)) == content(alone)
    assert {name: content(Store("kept").find(name)) for name in shorter} == shorter
    assert papers.results(Path("found")).table("musat/two").protocol == "full"
    assert "goes on from" not in say("musat/two", "--protocol", "full", papers=papers)[1]


def test_what_was_begun_goes_on_where_it_is(say: Say, papers: Registry, full: Experiments) -> None:
    begin(full[0])
    Store("kept").create(full[1])  # without a state to go on from, it has not begun
    out = say("musat/two", "--protocol", "full", papers=papers)[1]
    assert out.count("goes on from") == 1
    assert f"{full[1].run_name()} goes on from" in out


def test_what_others_began_meanwhile_is_left_to_them(
    papers: Registry, full: Experiments, monkeypatch: Patch
) -> None:
    store = Store("kept")
    begin(full[0])
    before = content(store.find(full[0].run_name()))
    monkeypatch.setattr("hopscope.cli.reproduce._has_begun", lambda *_: False)  # a moment ago
    with store.create(full[1]).locked():
        go_on_from_shorter(papers.targets["musat/two"], full, store)
    assert content(store.find(full[0].run_name())) == before
    assert not store.find(full[1].run_name()).manifest.files.keys() - {"config.json"}


def test_a_damaged_run_keeps_no_other_from_going_on(
    say: Say, papers: Registry, full: Experiments
) -> None:
    store = Store("kept")
    damaged = store.create(full[0]).path / "config.json"
    damaged.write_bytes(damaged.read_bytes()[:9])
    code, out, err = say("musat/two", "--protocol", "full", papers=papers)
    assert code == 2
    assert f"{full[1].run_name()} goes on from" in out
    assert f"{damaged} is damaged" in err
    assert store.find(full[1].run_name()).manifest.complete


def test_only_a_beginning_is_gone_on_from(tiny: Experiment) -> None:
    assert goes_on(longer(tiny), tiny)
    for changes in ({"steps": 12}, {"lr": 0.5}, {"schedule": "cosine"}, {"checkpoint_every": 3}):
        assert not goes_on(longer(tiny, **changes), tiny), changes
    # Its last 100 steps are validated every 10, the others every 50.
    short = longer(tiny, steps=120, validate_every=50)
    assert goes_on(longer(short, steps=200), short)
    assert not goes_on(longer(short, steps=200, validate_every=7), short)


def test_models_of_figure_4_go_on_from_the_short_ones() -> None:
    known = [each for each in short_over_seeds("ic") if isinstance(each, Experiment)]
    for recipe in over_seeds():
        assert isinstance(recipe, Experiment)
        found = [each for each in known if goes_on(recipe, each)]
        assert len(found) == (0 not in recipe.seeds)
