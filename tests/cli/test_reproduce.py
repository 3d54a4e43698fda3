"""`hopscope papers run`: from runs to rows and figures, and on where it or a shorter one ended."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from calling import End, Patch, Say, ends, registry, watcher
from musat_rows import saved, tables
from stopping import begun, changed, content

from hopscope.configs import Experiment, Recipe
from hopscope.errors import NotLearned
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.row import ResultRow
from hopscope.store import RunFolder, Store

Recipes = tuple[Recipe, ...]
Experiments = tuple[Experiment, ...]


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


def runs(papers: Registry) -> list[str]:
    """The runs that are measured."""
    return [*papers.results(Path("found")).measured("musat/two")]


def test_what_is_measured_is_drawn_again_and_nothing_trained(say: Say) -> None:
    saved(Path("found"), {"musat/fig4-ic": tables()["musat/fig4-ic"]})
    drawn = [Path(f"found/musat/fig4-ic-{name}.svg") for name in ("layers", "courses", "law")]
    told = [*(f"figure: {path}" for path in drawn), "overview: found/README.md"]
    for _ in range(2):
        code, out, err = say("--draw")  # of all experiments, those that are measured
        assert (code, err, out.splitlines()) == (0, "", told)
    code, out, err = say("musat/fig4-ic", "--protocol", "full")
    assert (code, err) == (0, "")
    assert out == "musat/fig4-ic, full protocol: all 8 runs are measured; nothing to train\n"
    assert not Path("kept").exists()
    Path("found/musat/fig4-ic.jsonl").write_text("{}\n")
    for words in (("musat/fig4", "--draw"), ("musat/fig4-ic",)):
        assert say(*words)[0] == 2


def test_what_is_committed_is_not_trained_again(say: Say) -> None:
    """In the results of the repository the reduced protocol, or a better one, is complete."""
    committed = Path(__file__).parents[2] / "results"
    shutil.copytree(committed, "found", ignore=shutil.ignore_patterns("*.svg"))
    before = Path("found/musat/fig5.jsonl").read_bytes()
    code, out, _ = say()
    assert code == 0
    assert out.count("nothing to train") == len(PAPERS.experiments) == len(out.splitlines())
    assert not Path("kept").exists()
    assert Path("found/musat/fig5.jsonl").read_bytes() == before
    told = {row["experiment"]: row for row in json.loads(
        say("musat/fig7-pair", "--list", "--protocol", "full", "--json")[1]
    )}  # fmt: skip
    row = told["musat/fig7-pair"]
    assert (row["runs"], row["measured"], row["missing"]) == (3, 0, 3)
    assert 2 * 3_600 < row["seconds_here"] < 24 * 3_600  # by what shorter ones took
    assert 1 < row["seconds_gpu"] < 3_600
    assert "2 to train: about" not in out


def test_experiments_are_listed_and_trained_once(say: Say, two: Registry, recipes: Recipes) -> None:
    (row,) = json.loads(say("--list", "--json", papers=two)[1])
    assert (row["runs"], row["measured"], row["missing"]) == (2, 0, 2)
    assert not Path("kept").exists()
    code, out, _ = say("musat/two", "--time-limit", "1e-9", papers=two)
    assert code == 75
    assert "0 of 2 runs are measured; the same command continues" in out
    assert not Path("found/musat").exists()
    code, out, _ = say("musat", papers=two)
    assert code == 0
    assert out.startswith("musat/two, reduced protocol: 0 of 2 runs measured, 2 to train: ")
    first = Path("found/musat/two.jsonl").read_bytes()
    assert runs(two) == [recipe.run_name() for recipe in recipes]
    shutil.rmtree("kept")
    code, out, _ = say("musat/two", papers=two)
    assert (code, Path("kept").exists()) == (0, False)
    assert out == "musat/two, reduced protocol: all 2 runs are measured; nothing to train\n"
    assert Path("found/musat/two.jsonl").read_bytes() == first
    assert "musat/two" in say("--list", papers=two)[1]


def test_a_sweep_whose_time_is_over_goes_on(
    say: Say, two: Registry, recipes: Recipes, monkeypatch: Patch
) -> None:
    clock = Clock()
    monkeypatch.setattr("hopscope.runs.stop.time", clock)

    def pass_ten_seconds(*_: object) -> None:
        clock.now += 10

    shown = watcher(advance=pass_ten_seconds)
    monkeypatch.setattr("hopscope.cli.workers.RunDisplay", lambda: shown)
    words = ("musat/two", "--time-limit", "2.9")  # 174 seconds: 12 steps and 6
    code, out, err = say(*words, papers=two)
    assert (code, err) == (75, "")
    assert "musat/two: 1 of 2 runs are measured; the same command continues\n" in out
    assert "1 of 2 runs so far; two instead of all" in Path("found/README.md").read_text()
    assert Store("kept").create(recipes[1]).manifest.step == 6
    code, out, _ = say(*words, papers=two)
    assert code == 0
    assert "results: found/musat/two.jsonl" in out
    assert len(runs(two)) == 2


@pytest.mark.slow
def test_runs_of_workers_are_measured_meanwhile(say: Say, experiment: PaperExperiment) -> None:
    measured: list[str] = []

    def noted(folder: RunFolder) -> list[End]:
        measured.append(folder.name)
        return ends(folder)

    papers = registry(replace(experiment, measure=noted))
    assert say("musat/two", "--workers", "1", papers=papers)[0] == 0
    assert len(set(measured)) == len(measured) == 2


def test_results_that_cannot_be_written_are_one_line(say: Say, two: Registry) -> None:
    for path, line, trained in (
        ("found", "cannot write found/README.md: ", False),
        ("found/README.md", "found/README.md was not written by hopscope and would be ", False),
        ("found/musat", "cannot write found/musat/two.jsonl: ", True),
    ):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("# mine\n")
        code, _, err = say("musat/two", papers=two)
        assert (code, err.count("\n")) == (2, 1)
        assert err.startswith(f"hopscope: {line}")
        assert Path(path).read_text() == "# mine\n"
        assert bool(Store("kept").names()) == trained  # which is kept
        Path(path).unlink()


def test_what_fails_loses_nothing_else(
    say: Say, experiment: PaperExperiment, recipes: Recipes
) -> None:
    def fail() -> list[ResultRow]:
        raise NotLearned("there is no theory")

    def some(folder: RunFolder) -> list[End]:
        if folder.name == recipes[0].run_name():
            raise NotLearned("the model learned nothing")
        return ends(folder)

    one = PaperExperiment("musat/one", "no use", (End,), compute=fail)
    papers = registry(one, replace(experiment, measure=some))
    code, out, err = say("musat", papers=papers)
    assert code == 2
    assert err.splitlines() == [
        "hopscope: musat/one: there is no theory",
        "hopscope: musat/two: the model learned nothing",
    ]
    assert "1 of 2 runs are measured" in out
    assert "overview: found/README.md" in out
    assert runs(papers) == [recipes[1].run_name()]
    assert say("musat/two", papers=registry(experiment))[0] == 0
    assert len(runs(papers)) == 2


@pytest.fixture
def full(recipes: Experiments) -> Experiments:
    return tuple(changed(recipe, steps=30) for recipe in recipes)


@pytest.fixture
def papers(experiment: PaperExperiment, full: Recipes, say: Say) -> Registry:
    """The experiment, with a longer protocol beside its own, whose runs there are."""
    known = registry(replace(experiment, recipes={**experiment.recipes, "full": lambda: full}))
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
        assert Store("kept").find(name).manifest.complete
    assert {name: content(Store("kept").find(name)) for name in shorter} == shorter
    assert len(runs(papers)) == 4
    assert "goes on from" not in say("musat/two", "--protocol", "full", papers=papers)[1]


def test_what_was_begun_goes_on_where_it_is(say: Say, papers: Registry, full: Experiments) -> None:
    begun(full[0], Store("kept"))
    Store("kept").create(full[1])  # without a state to go on from, it has not begun
    out = say("musat/two", "--protocol", "full", papers=papers)[1]
    assert out.count("goes on from") == 1
    assert f"{full[1].run_name()} goes on from" in out


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
