"""The claims in a terminal, as lines of JSON, and on a page."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from hopscope.cli.commands import COMMANDS
from hopscope.cli.main import call
from hopscope.cli.main import run as hopscope
from hopscope.errors import ConfigError, StoreUnwritable
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


CLAIMS = {
    claim.id: claim
    for claim in (
        Claim(
            "musat/above-0.7",
            "The loss stays high",
            "§7",
            "> 0.7",
            "8 seeds",
            ("musat/fig4",),
            lambda tables: Finding("0.72 [seed 3]", "reproduced", "all seeds"),
        ),
        Claim(
            "chen/winner",
            "The parents win",
            "theorem 3",
            "all",
            "20 seeds",
            ("chen/stages",),
            lambda tables: Finding("19", "not reproduced", ""),
        ),
        Claim(
            "musat/below-0.5",
            "The loss is low",
            "§7",
            "< 0.5",
            "8 seeds",
            ("musat/fig4",),
            lambda tables: Finding("0.72; 0.8 (one; two)", "not reproduced", "all seeds"),
            reason=Reason("It is 0.72.", 'hopscope ablate gallery/x --head "5.0:value 1=uniform"'),
        ),
    )
}
PAPERS = Registry(
    targets={"musat/fig4": Target("musat/fig4", "Figure 4: losses", (Measured,))}, claims=CLAIMS
)


def claims(arguments: Sequence[str]) -> int:
    return call(COMMANDS["claims"], arguments, papers=PAPERS)


def report(arguments: Sequence[str]) -> int:
    drawn = [("one", Picture("a figure", "What it shows.", (3.0, 2.0)))]
    return call(COMMANDS["report"], arguments, papers=PAPERS, draw=lambda *_: drawn)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with results of one target, and two claims of which it decides one."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    PAPERS.results(Path("results")).save(Table("musat/fig4", "full", (Measured(loss=0.72),)))
    return tmp_path


def test_a_row_for_each_claim_verdict_by_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert claims([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["reproduced: 1", "musat/above-0.7  The loss stays high"]
    assert lines[3:5] == ["not reproduced: 1", "musat/below-0.5    The loss is low"]
    assert lines[6:8] == ["not measured: 1", "chen/winner      The parents win"]


def test_a_pattern_is_how_an_id_begins(capsys: pytest.CaptureFixture[str]) -> None:
    claims(["chen"])
    out = capsys.readouterr().out
    assert "musat" not in out
    assert "not measured" in out
    claims(["win"])  # the paper may be left out
    assert capsys.readouterr().out.splitlines()[0] == "chen/winner"


@pytest.mark.parametrize("name", ["musat/above-0.7", "above-0.7", "musat/a"])
def test_all_of_one_claim_is_shown(capsys: pytest.CaptureFixture[str], name: str) -> None:
    claims([name])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["musat/above-0.7", "The loss stays high"]
    parts = dict(line.split(maxsplit=1) for line in lines[3:])
    assert parts["ours"] == "0.72 [seed 3]"  # brackets are no markup
    assert parts["verdict"] == "reproduced"
    assert parts["evidence"] == "all seeds"
    assert parts["basis"] == "musat/fig4: computed, without any training"
    names = {"verdict", "where", "paper", "ours", "evidence", "basis", "how", "targets"}
    assert set(parts) == names


def test_what_is_not_reproduced_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claims(["below-0.5"])
    lines = capsys.readouterr().out.splitlines()
    ours = next(number for number, line in enumerate(lines) if line.startswith("ours"))
    assert lines[ours : ours + 2] == ["ours      0.72", "          0.8 (one; two)"]  # by clauses
    assert "why       It is 0.72." in lines
    command = 'hopscope ablate gallery/x --head "5.0:value 1=uniform"'
    assert lines[-2:] == ["what shows why:", command]
    monkeypatch.setenv("COLUMNS", "40")
    claims(["below-0.5"])
    copied = capsys.readouterr().out.partition("what shows why:\n")[2]
    assert copied.count(" \\\n") == 1
    assert shlex.split(copied.replace("\\\n", "")) == shlex.split(command)
    claims(["below-0.5", "--json"])
    (told,) = json.loads(capsys.readouterr().out)
    assert told["why"] == {"says": "It is 0.72.", "command": command}
    claims(["below-0.5", "--results", "elsewhere"])  # not measured: nothing to give a reason for
    assert "why" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("musat/above-0.8", "no claim 'musat/above-0.8': did you mean musat/above-0.7"),
        ("zzz", "no claim 'zzz': `hopscope claims` lists all"),
    ],
)
def test_unknown_claims_are_refused(pattern: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        claims([pattern])


def test_json_is_an_object_for_each_claim(capsys: pytest.CaptureFixture[str]) -> None:
    claims(["--json"])
    first, second, _ = json.loads(capsys.readouterr().out)
    assert first == {
        "id": "musat/above-0.7",
        "says": "The loss stays high",
        "where": "§7",
        "paper": "> 0.7",
        "how": "8 seeds",
        "targets": ["musat/fig4"],
        "ours": "0.72 [seed 3]",
        "verdict": "reproduced",
        "evidence": "all seeds",
        "basis": "musat/fig4: computed, without any training",
        "why": None,
    }
    assert second["verdict"] == "not measured"


def test_a_folder_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert claims(["--results", "elsewhere"]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith("hopscope: no folder elsewhere, so nothing is measured: ")
    assert captured.err.count("\n") == 1
    assert captured.out.startswith("not measured: 3")


def test_results_that_cannot_be_read_do_not_hide_the_others(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims([])
    before = capsys.readouterr().out
    (folder / "results/musat/fig4.jsonl").write_text("{}\n")
    assert claims([]) == 2
    captured = capsys.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert captured.err.startswith(
        "hopscope: results/musat/fig4.jsonl is no table of results of musat/fig4: remove it"
    )
    others = [line for line in before.splitlines() if line.startswith("chen/")]
    assert others
    assert set(others) <= set(captured.out.splitlines())
    assert claims(["chen"]) == 0


def test_a_part_that_cannot_be_read_is_told_and_the_rest_is_judged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = replace(CLAIMS["musat/above-0.7"], beside=("chen/more",))
    targets = {**PAPERS.targets, "chen/more": Target("chen/more", "more", (Measured,))}
    papers = Registry(targets=targets, claims={beside.id: beside})
    (folder / "results/chen").mkdir()
    (folder / "results/chen/more.reduced.part.jsonl").write_text("{}\n")
    assert call(COMMANDS["claims"], ["--json"], papers=papers) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("hopscope: results/chen/more.reduced.part.jsonl is no table")
    (told,) = json.loads(captured.out)
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


def test_a_page_that_cannot_be_written_is_one_line() -> None:
    with pytest.raises(StoreUnwritable, match="cannot write results/musat/fig4.jsonl/page.html"):
        report(["--out", "results/musat/fig4.jsonl/page.html"])


def test_elsewhere_there_is_what_came_with_hopscope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere" / "results").mkdir(parents=True)  # of something else
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert hopscope(["claims", "--json"]) == 0
    captured = capsys.readouterr()
    assert "these results came with version" in captured.err
    kept = that_came_with_it()
    assert kept is not None
    judged = json.loads(captured.out)
    expected = PAPERS_OF_ALL.results(kept)
    assert [each["verdict"] for each in judged] == [
        claim.finding(expected).verdict for claim in PAPERS_OF_ALL.claims.values()
    ]
    assert sum(each["verdict"] != "not measured" for each in judged) > len(judged) / 2
