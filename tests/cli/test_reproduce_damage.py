"""`hopscope reproduce` where something cannot be measured, read or written over."""

import re
from dataclasses import replace
from pathlib import Path

from reproducing import End, Say, ends, registry

from hopscope.configs import Recipe
from hopscope.errors import NotLearned
from hopscope.papers.registry import Registry
from hopscope.papers.table import Protocol
from hopscope.papers.target import Target
from hopscope.store import RunFolder


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


def test_a_page_of_somebody_elses_is_not_written_over(say: Say, two: Registry) -> None:
    Path("found").mkdir()
    Path("found/README.md").write_text("# My project\n")
    code, _, err = say("musat/two", papers=two)
    assert code == 2
    assert err.startswith("hopscope: found/README.md is not a page of hopscope's, and would be ")
    assert err.count("\n") == 1
    assert Path("found/README.md").read_text() == "# My project\n"
    assert not Path("kept").exists()
