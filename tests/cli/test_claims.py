"""The claims in a terminal, as lines of JSON, and on a page."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hopscope.cli.commands import COMMANDS
from hopscope.cli.main import call
from hopscope.cli.main import run as hopscope
from hopscope.errors import StoreUnwritable
from hopscope.papers.claim import Claim, Finding, Reason
from hopscope.papers.registry import PAPERS as PAPERS_OF_ALL
from hopscope.papers.registry import Registry
from hopscope.papers.results_folder import that_came_with_it
from hopscope.papers.row import Row
from hopscope.papers.table import Table
from hopscope.papers.target import Target
from hopscope.report.look import Picture


class Measured(Row):
    loss: float


COMMAND = 'hopscope ablate gallery/x --head "5.0:value 1=uniform"'
ABOVE, WINNER, BELOW = (
    Claim(
        "musat/above-0.7", "The loss stays high", "§7", "> 0.7", "8 seeds", ("musat/fig4",),
        lambda tables: Finding("0.72 [seed 3]", "reproduced", "all seeds"),
    ),
    Claim(
        "chen/winner", "The parents win", "theorem 3", "all", "20 seeds", ("chen/stages",),
        lambda tables: Finding("19", "not reproduced", ""),
    ),
    Claim(
        "musat/below-0.5", "The loss is low", "§7", "< 0.5", "8 seeds", ("musat/fig4",),
        lambda tables: Finding("0.72; 0.8 (one; two)", "not reproduced", "all seeds"),
        reason=Reason("It is 0.72.", COMMAND),
    ),
)  # fmt: skip
PAPERS = Registry(
    targets={"musat/fig4": Target("musat/fig4", "Figure 4: losses", (Measured,))},
    claims={claim.id: claim for claim in (ABOVE, WINNER, BELOW)},
)
Claims = Callable[..., list[str]]


@pytest.fixture(autouse=True)
def folder(root: Path) -> Path:
    """A folder with results of one target, and three claims of which it decides two."""
    PAPERS.results(Path("results")).save(Table("musat/fig4", "full", (Measured(loss=0.72),)))
    return root


@pytest.fixture
def claims(capsys: pytest.CaptureFixture[str]) -> Claims:
    """The lines that the command prints."""

    def said(*words: str, papers: Registry = PAPERS, code: int = 0) -> list[str]:
        assert call(COMMANDS["claims"], words, papers=papers) == code
        captured = capsys.readouterr()
        return captured.out.splitlines() + captured.err.splitlines()

    return said


def report(arguments: Sequence[str]) -> int:
    drawn = [("one", Picture("a figure", "What it shows.", (3.0, 2.0)))]
    return call(COMMANDS["report"], arguments, papers=PAPERS, draw=lambda *_: drawn)


def test_a_row_for_each_claim_verdict_by_verdict(claims: Claims) -> None:
    lines = claims()
    assert lines[:2] == ["reproduced: 1", "musat/above-0.7  The loss stays high"]
    assert lines[3:5] == ["not reproduced: 1", "musat/below-0.5    The loss is low"]
    assert lines[6:8] == ["not measured: 1", "chen/winner      The parents win"]
    assert claims("chen")[0] == "chen/winner"  # how an id begins
    assert claims("win")[0] == "chen/winner"  # the paper may be left out
    assert claims("--results", "elsewhere")[0] == "not measured: 3"
    assert claims("--results", "elsewhere")[-1].startswith("hopscope: no folder elsewhere, so ")


def test_all_of_one_claim_is_shown(claims: Claims) -> None:
    lines = claims("above-0.7")
    assert lines == claims("musat/a")
    assert lines[:2] == ["musat/above-0.7", "The loss stays high"]
    told = dict(line.split(maxsplit=1) for line in lines[3:])
    assert told == {
        "verdict": "reproduced", "where": "§7", "paper": "> 0.7", "how": "8 seeds",
        "targets": "musat/fig4", "ours": "0.72 [seed 3]",  # brackets are no markup
        "evidence": "all seeds", "basis": "musat/fig4: computed, without any training",
    }  # fmt: skip
    (row,) = json.loads("".join(claims("above-0.7", "--json")))
    assert row == {
        **told, "id": "musat/above-0.7", "says": "The loss stays high", "targets": ["musat/fig4"],
        "why": None,
    }  # fmt: skip


def test_what_is_not_reproduced_says_why(claims: Claims, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = claims("below-0.5")
    ours = next(number for number, line in enumerate(lines) if line.startswith("ours"))
    assert lines[ours : ours + 2] == ["ours      0.72", "          0.8 (one; two)"]  # by clauses
    assert "why       It is 0.72." in lines
    assert lines[-2:] == ["what shows why:", COMMAND]
    (told,) = json.loads("".join(claims("below-0.5", "--json")))
    assert told["why"] == {"says": "It is 0.72.", "command": COMMAND}
    monkeypatch.setenv("COLUMNS", "40")
    copied = "\n".join(claims("below-0.5")).partition("what shows why:\n")[2]
    assert copied.count(" \\\n") == 1
    assert shlex.split(copied.replace("\\\n", "")) == shlex.split(COMMAND)
    unmeasured = claims("below-0.5", "--results", "elsewhere")  # nothing to give a reason for
    assert not any("why" in line for line in unmeasured)


def test_results_that_cannot_be_read_do_not_hide_the_others(folder: Path, claims: Claims) -> None:
    before = claims()
    (folder / "results/musat/fig4.jsonl").write_text("{}\n")
    *lines, told = claims(code=2)
    assert told.startswith("hopscope: results/musat/fig4.jsonl is no table of results of musat/fi")
    others = {line for line in before if line.startswith("chen/")}
    assert others
    assert others <= {*lines}
    claims("chen")


def test_a_part_that_cannot_be_read_is_told_and_the_rest_is_judged(
    folder: Path, claims: Claims
) -> None:
    targets = {**PAPERS.targets, "chen/more": Target("chen/more", "more", (Measured,))}
    papers = Registry(targets=targets, claims={ABOVE.id: replace(ABOVE, beside=("chen/more",))})
    (folder / "results/chen").mkdir()
    (folder / "results/chen/more.reduced.part.jsonl").write_text("{}\n")
    *lines, err = claims("--json", papers=papers, code=2)
    assert err.startswith("hopscope: results/chen/more.reduced.part.jsonl is no table")
    (told,) = json.loads("".join(lines))
    assert told["verdict"] == "reproduced"
    assert told["evidence"] == "all seeds; a part of chen/more cannot be read"


def test_the_report_is_one_page(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report([]) == 0
    assert capsys.readouterr().out == "page: reports/papers.html\n"
    text = (folder / "reports/papers.html").read_text()
    assert "The parents win" in text
    assert text.count("<svg ") == 1
    report(["--results", "elsewhere", "--out", "other/page.html"])
    assert "<svg " not in (folder / "other/page.html").read_text()
    with pytest.raises(StoreUnwritable, match="cannot write results/musat/fig4.jsonl/page.html"):
        report(["--out", "results/musat/fig4.jsonl/page.html"])


def test_elsewhere_there_is_what_came_with_hopscope(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "elsewhere" / "results").mkdir(parents=True)  # of something else
    monkeypatch.chdir(folder / "elsewhere")
    assert hopscope(["claims", "chen", "--json"]) == 0
    captured = capsys.readouterr()
    assert "these results came with version" in captured.err
    kept = that_came_with_it()
    assert kept is not None
    judged = [each["verdict"] for each in json.loads(captured.out)]
    expected = PAPERS_OF_ALL.results(kept)
    of_chen = (claim for name, claim in PAPERS_OF_ALL.claims.items() if name.startswith("chen/"))
    assert judged == [claim.finding(expected).verdict for claim in of_chen]
    assert judged.count("not measured") < len(judged) / 2
