"""`hopscope reproduce`: from runs to tables and figures, and on again where it stopped."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from reproducing import End, Say, ends, registry

from hopscope.cli.workers import carried_out
from hopscope.configs import Recipe
from hopscope.errors import NotLearned
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.table import Protocol, Table
from hopscope.papers.target import Target
from hopscope.store import RunFolder, Store
from hopscope.workers import Here, Outcome, carry_out


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Quiet:
    """A display that shows nothing."""

    def start(self, folder: RunFolder, step: int) -> None:
        return None

    def advance(self, step: int, latest: object) -> None:
        return None

    def stop(self) -> None:
        return None


class Looking(Quiet):
    """A display that looks at what is measured when a training begins."""

    seen: ClassVar[list[tuple[str, ...]]] = []

    def start(self, folder: RunFolder, step: int) -> None:
        part = Path("found/musat/two.reduced.part.jsonl")
        rows = part.read_text().splitlines()[1:] if part.is_file() else []
        self.seen.append(tuple(json.loads(row)["run"] for row in rows))


def test_depth_is_computed_kept_and_drawn(say: Say) -> None:
    code, out, err = say("musat/depth", "--protocol", "smoke", "--threads", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:] == [
        "results: found/musat/depth.jsonl",
        "figure: found/musat/depth-layers.svg",
        "figure: found/musat/depth-shared.svg",
        "overview: found/README.md",
    ]
    assert "musat/theorem-1" in Path("found/README.md").read_text()
    table = PAPERS.results(Path("found")).table("musat/depth")
    assert (table.protocol, table.remark) == ("smoke", "fewer hops")
    assert "1 threads" in table.machine
    assert len(table.rows) == 13
    for name in ("layers", "shared"):
        assert "<svg" in Path(f"found/musat/depth-{name}.svg").read_text()
    assert not Path("kept").exists()  # it is computed, without runs
    assert say("musat/depth", "--protocol", "smoke", "--threads", "1")[0] == 0


def test_targets_are_listed_with_what_there_is(say: Say, two: Registry) -> None:
    code, out, _ = say("--list", papers=two)
    assert code == 0
    head, row = out.splitlines()
    assert head.split() == "target shows protocol runs there are of measured".split()
    assert row.split("  ")[0] == "musat/two"
    assert re.search(r"reduced +0 +2 ", row)
    assert row.rstrip().endswith("not yet")
    assert not Path("kept").exists()
    say("musat", papers=two)
    row = say("--list", "--protocol", "full", papers=two)[1].splitlines()[1]
    assert re.search(r"reduced +2 +2 ", row)
    assert row.rstrip().endswith("reduced")
    out = say("--list")[1]
    assert all(known.name in out for known in PAPERS.targets.values())
    assert "chen" not in say("musat/fig4", "--list")[1]


def test_runs_are_trained_once(say: Say, two: Registry, recipes: tuple[Recipe, ...]) -> None:
    code, out, _ = say("musat/two", papers=two)
    assert code == 0
    assert "musat/two, reduced protocol: two of them" in out
    assert "figure" not in out
    first = Path("found/musat/two.jsonl").read_bytes()
    assert json.loads(first.splitlines()[0])["remark"] == "two instead of all"
    assert len(first.splitlines()) == 3
    code, out, _ = say("musat/two", papers=two)
    assert code == 0
    assert not any(recipe.run_name() in out for recipe in recipes)
    assert Path("found/musat/two.jsonl").read_bytes() == first


def test_a_sweep_whose_time_is_over_goes_on_with_the_same_command(
    say: Say, two: Registry, recipes: tuple[Recipe, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr("hopscope.runs.stop.time", clock)

    class Passing(Quiet):
        """A display for which every step takes ten seconds."""

        def advance(self, step: int, latest: object) -> None:
            clock.now += 10

    monkeypatch.setattr("hopscope.cli.display.display", Passing)
    words = ("musat/two", "--time-limit", "2.9")  # 174 seconds: 12 steps and 6
    code, out, err = say(*words, papers=two)
    assert (code, err) == (75, "")
    part = Path("found/musat/two.reduced.part.jsonl")
    assert (f"\n1 of 2 runs are complete and measured ({part}); the same command goes on\n") in out
    assert not two.results(Path("found")).has("musat/two")
    assert "1 of 2 runs so far; two instead of all" in Path("found/README.md").read_text()
    assert Store("kept").create(recipes[1]).manifest.step == 6
    code, out, _ = say(*words, papers=two)
    assert code == 0
    assert "results: found/musat/two.jsonl" in out
    assert len(two.results(Path("found")).table("musat/two").rows) == 2
    assert not part.exists()


def test_what_is_complete_is_measured_before_anything_is_trained(
    say: Say, two: Registry, recipes: tuple[Recipe, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hopscope.cli.display.display", Looking)
    first, second = (recipe.run_name() for recipe in recipes)
    for there, seen in (((), [(), (first,)]), (recipes[1:], [(second,)])):
        monkeypatch.setattr(Looking, "seen", [])
        for folder in ("kept", "found"):
            shutil.rmtree(folder, ignore_errors=True)
        carry_out(there, "kept", workers=Here(threads=1))
        assert say("musat/two", papers=two)[0] == 0
        assert Looking.seen == seen


@pytest.mark.parametrize("words", [(), pytest.param(("--workers", "1"), marks=pytest.mark.slow)])
def test_runs_are_measured_while_the_sweep_is_carried_out(
    say: Say, target: Target, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
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
    assert say("musat/two", *words, papers=papers)[0] == 0
    assert by_then == [2]
    assert len(set(measured)) == len(measured) == 2


def test_a_sweep_goes_on_where_another_machine_left_it(
    say: Say, two: Registry, recipes: tuple[Recipe, ...]
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


def test_nothing_measured_leaves_no_part(say: Say, two: Registry) -> None:
    code, out, _ = say("musat/two", "--time-limit", "1e-9", papers=two)
    assert code == 75
    assert "0 of 2 runs are complete and measured; the same command goes on" in out
    assert not Path("found/musat").exists()


def test_better_results_are_in_the_way_before_anything_is_trained(
    say: Say, target: Target, two: Registry
) -> None:
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


def test_one_that_fails_does_not_keep_the_others_waiting(say: Say, target: Target) -> None:
    def fail(protocol: Protocol) -> list[End]:
        raise NotLearned("the model learned nothing")

    both = registry(Target("musat/one", "no use", (End,), compute=fail), target)
    code, out, err = say("musat", papers=both)
    assert code == 2
    assert err.splitlines()[-1] == "hopscope: musat/one: the model learned nothing"
    assert "overview: found/README.md" in out
    results = both.results(Path("found"))
    assert results.has("musat/two")
    assert not results.has("musat/one")


def test_results_that_cannot_be_written_are_one_line(say: Say, two: Registry) -> None:
    Path("found").write_text("")
    code, _, err = say("musat/two", papers=two)
    assert code == 2
    assert err.startswith("hopscope: cannot write found/README.md: ")
    assert not Store("kept").names()  # before anything is trained
    Path("found").unlink()
    Path("found").mkdir()
    Path("found/README.md").write_text("# My project\n")
    code, _, err = say("musat/two", papers=two)
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("hopscope: found/README.md is not a page of hopscope's, and would be ")
    assert Path("found/README.md").read_text() == "# My project\n"
    Path("found/README.md").unlink()
    Path("found/musat").write_text("")
    code, _, err = say("musat/two", papers=two)
    assert code == 2
    assert err.startswith("hopscope: cannot write found/musat/two.reduced.part.jsonl: ")
    assert Store("kept").names()  # what was trained is kept


def test_one_that_cannot_be_measured_does_not_lose_the_others(
    say: Say, target: Target, recipes: tuple[Recipe, ...]
) -> None:
    broken = recipes[0].run_name()

    def some(folder: RunFolder, protocol: Protocol) -> list[End]:
        if folder.name == broken:
            raise NotLearned("the model learned nothing")
        return ends(folder, protocol)

    code, out, err = say("musat/two", papers=registry(replace(target, measure=some)))
    assert (code, err) == (2, "hopscope: musat/two: the model learned nothing\n")
    assert "1 of 2 runs are complete and measured" in out
    results = registry(target).results(Path("found"))
    assert results.part("musat/two", "reduced").runs == (recipes[1].run_name(),)
    assert say("musat/two", papers=registry(target))[0] == 0
    assert len(results.table("musat/two").rows) == 2


def test_what_cannot_be_read_does_not_stop_the_list_or_other_targets(
    say: Say, two: Registry, recipes: tuple[Recipe, ...]
) -> None:
    assert say("musat/two", papers=two)[0] == 0
    (Path("kept") / recipes[0].run_name() / "manifest.json").write_text("{}")
    Path("found/musat/two.full.part.jsonl").write_text("{}\n")
    code, out, _ = say("--list", papers=two)
    assert code == 0
    assert re.search(r"reduced +1 +2 +reduced", out)
    assert say("musat/depth", "--protocol", "smoke", "--threads", "1")[0] == 0
