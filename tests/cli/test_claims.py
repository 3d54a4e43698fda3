"""The claims and readings in a terminal, as lines of JSON, and on a page."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import musat_rows
import pytest
import three_claims
from calling import Captured, Patch, Said
from three_claims import ABOVE, COMMAND, THREE, Measured

from hopscope.cli.main import run as hopscope
from hopscope.errors import ConfigError, StoreUnwritable
from hopscope.papers import registry
from hopscope.papers.cost import training_flop
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.musat.variants import VARIANTS, Variant, variant_of
from hopscope.papers.registry import Registry
from hopscope.papers.results import that_came_with_it
from hopscope.papers.row import ResultRow
from hopscope.plots import table_figures
from hopscope.plots.look import Picture

Claims = Callable[..., list[str]]


@pytest.fixture
def folder(root: Path) -> Path:
    """A folder with results of one target, and three claims of which it decides two."""
    three_claims.measured(root / "results")
    return root


@pytest.fixture
def claims(folder: Path, capsys: Captured, monkeypatch: Patch) -> Claims:
    """The lines that the command prints."""

    def said(*words: str, papers: Registry = THREE, code: int = 0) -> list[str]:
        monkeypatch.setattr(registry, "PAPERS", papers)
        assert hopscope(["papers", "claims", *words]) == code
        captured = capsys.readouterr()
        return captured.out.splitlines() + captured.err.splitlines()

    return said


def test_a_row_for_each_claim_verdict_by_verdict(claims: Claims) -> None:
    lines = claims()
    assert lines[:2] == ["reproduced: 1", "musat/above-0.7  The loss stays high & flat"]
    assert lines[3:5] == ["not reproduced: 1", "musat/below-0.5    The loss is low"]
    assert lines[6:8] == [
        "not measured: 1, 1 of which are ours",
        "chen/winner                           The parents win | none",
    ]
    assert claims("chen")[0] == "chen/winner"  # how an id begins
    assert claims("win")[0] == "chen/winner"  # the paper may be left out


def test_all_of_one_claim_is_shown(claims: Claims) -> None:
    lines = claims("above-0.7")
    assert lines[:2] == ["musat/above-0.7", "The loss stays high & flat"]
    told = dict(line.split(maxsplit=1) for line in lines[3:])
    assert told == {
        "verdict": "reproduced", "where": "§7", "paper": "> 0.7", "how": "8 seeds",
        "from": "musat/fig4", "ours": "0.72 [seed 3]",  # brackets are no markup
        "evidence": "holds for 1 of 1", "all": "<seeds>",  # a clause in each line
        "cost": "musat/fig4: computed, without any training",
    }  # fmt: skip
    (row,) = json.loads("".join(claims("above-0.7", "--json")))
    del told["from"], told["all"]
    told["evidence"] += "; all <seeds>"
    (outcome,) = row.pop("outcomes")
    assert (outcome["holds"], outcome["count"]) == (True, 1)
    assert row == {
        **told, "id": "musat/above-0.7", "says": "The loss stays high & flat", "origin": "paper",
        "experiments": ["musat/fig4"], "cost": [told["cost"]], "notes": [], "chance": None,
        "why": None,
    }  # fmt: skip


def test_what_is_not_reproduced_says_why(claims: Claims, monkeypatch: Patch) -> None:
    lines = claims("below-0.5")
    ours = next(number for number, line in enumerate(lines) if line.startswith("ours"))
    assert lines[ours : ours + 2] == ["ours      0.72", "          0.8 (one; two)"]  # by clauses
    assert "why       It is <0.72>." in lines
    assert lines[-2:] == ["command that shows why:", COMMAND]
    (told,) = json.loads("".join(claims("below-0.5", "--json")))
    assert told["why"] == {"says": "It is <0.72>.", "command": COMMAND}
    monkeypatch.setenv("COLUMNS", "40")
    copied = "\n".join(claims("below-0.5")).partition("command that shows why:\n")[2]
    assert copied.count(" \\\n") == 1
    assert shlex.split(copied.replace("\\\n", "")) == shlex.split(COMMAND)
    unmeasured = claims("below-0.5", "--results", ".")  # nothing to give a reason for
    assert not any("why" in line for line in unmeasured)


def test_what_cannot_be_read_is_said_and_the_rest_is_judged(folder: Path, claims: Claims) -> None:
    more = PaperExperiment("chen/more", "more", (Measured,))
    papers = Registry(
        experiments={**THREE.experiments, more.name: more},
        claims={ABOVE.id: replace(ABOVE, beside=(more.name,))},
    )
    (folder / "results/chen").mkdir()
    (folder / "results/chen/more.jsonl").write_text("{}\n")
    *lines, err = claims("--json", papers=papers, code=2)
    assert err.startswith("hopscope: line 1 of results/chen/more.jsonl cannot be read")
    (told,) = json.loads("".join(lines))
    assert (told["verdict"], told["notes"]) == ("reproduced", ["chen/more cannot be read"])
    (folder / "results/musat/fig4.jsonl").write_text("{}\n")
    *lines, err = claims(code=2)
    assert err.startswith("hopscope: line 1 of results/musat/fig4.jsonl cannot be read")
    assert any(line.startswith("chen/winner ") for line in lines)
    claims("chen")  # no table of these


def test_the_report_is_one_page(folder: Path, capsys: Captured, monkeypatch: Patch) -> None:
    drawn = [("one", Picture("a figure", "What it shows.", (3.0, 2.0)))]
    monkeypatch.setattr(registry, "PAPERS", THREE)
    monkeypatch.setattr(table_figures, "figures", lambda *_: drawn)
    assert hopscope(["papers", "report"]) == 0
    assert capsys.readouterr().out == "page: reports/papers.html\n"
    text = (folder / "reports/papers.html").read_text()
    assert "The parents win" in text
    assert text.count("<svg ") == 2
    assert hopscope(["papers", "report"]) == 0  # its own page is written anew
    (folder / "mine.html").write_text("mine")
    with pytest.raises(ConfigError, match="mine.html is there, and hopscope did not write it"):
        hopscope(["papers", "report", "--save", "mine.html"])
    with pytest.raises(StoreUnwritable, match="cannot write results/musat/fig4.jsonl/page.html"):
        hopscope(["papers", "report", "--save", "results/musat/fig4.jsonl/page.html"])


def test_elsewhere_is_what_came_with_it(folder: Path, monkeypatch: Patch, capsys: Captured) -> None:
    (folder / "elsewhere" / "results").mkdir(parents=True)  # of something else
    monkeypatch.chdir(folder / "elsewhere")
    assert hopscope(["papers", "claims", "chen", "--json"]) == 0
    captured = capsys.readouterr()
    assert "these results came with version" in captured.err
    kept = that_came_with_it()
    assert kept is not None
    told = {each["id"]: each["verdict"] for each in json.loads(captured.out)}
    results = registry.PAPERS.results(kept)
    assert told == {id_: registry.PAPERS.claims[id_].finding(results).verdict for id_ in told}
    assert [*told.values()].count("not measured") < len(told) / 2
    assert hopscope(["papers", "run", "musat/depth", "--draw"]) == 0
    captured = capsys.readouterr()
    assert "these results came with version" in captured.err
    figures = [line.removeprefix("figure: ") for line in captured.out.splitlines()]
    assert figures  # here, and not where the rows are
    assert sorted(figures) == sorted(map(str, Path("results").rglob("*.*")))


NAME = variant_of("fan-in").name


def measured(rows: Sequence[ResultRow], name: str = "musat/variants") -> None:
    """Some models are measured, and other runs are not."""
    results = registry.PAPERS.results(Path("results"))
    for number, row in enumerate(rows):
        results.keep(name, f"{number}", [row], "here")


@pytest.fixture
def readings(root: Path, said: Said, monkeypatch: Patch) -> Said:
    """`hopscope papers claims --variants`, where some models are measured."""
    monkeypatch.setenv("COLUMNS", "80")
    Path("results").mkdir()
    return lambda *words: said("papers", "claims", "--variants", *words)


def test_claims_say_whether_variants_matter(readings: Said) -> None:
    other = musat_rows.variant_rows(variant_of("torch").name)
    bent = [musat_rows.with_(row, final=[0.02] * 3, model=0.02) for row in other]
    measured([*musat_rows.variant_rows(NAME), *bent])
    lines = [line.split() for line in readings().splitlines()]
    told = {line[0]: line[1:] for line in lines if line and line[0].startswith("musat/abc-")}
    assert told["musat/abc-below-0.01"] == ["3", "of", "6", "1", "of", "2", "0.25"]
    assert told["musat/abc-four-heads"] == ["6", "of", "6", "2", "of", "2", "1"]
    assert told["musat/abc-different"][-1] == "–"
    assert len(told) == 9


def test_words_choose_and_one_variant_is_shown_claim_by_claim(readings: Said) -> None:
    measured(musat_rows.variant_rows(NAME))
    rows = json.loads(readings("torch", "--json"))
    assert [row["variant"] for row in rows] == [
        variant.name for variant in VARIANTS if variant.init == "torch"
    ]
    assert rows[0]["losses"] == []
    told = readings(*NAME.split(), "in-order")
    assert told == readings(NAME)  # the name may be one word
    assert "musat/abc-four-heads" in told
    first = musat_rows.variant_rows(NAME)[0]
    steps = ["never" if step is None else f"{step:,}" for step in first.learned_at]
    shown = told.partition("learned at step\n")[2].splitlines()[0].split()
    assert shown == [f"{first.seed}", *steps]
    abc = musat_rows.tables()[musat_rows.ABC]
    measured(abc, musat_rows.ABC)
    (row,) = json.loads(readings(*dict(Variant()).values(), "--json"))
    assert (row["variant"], row["steps"]) == (Variant().name, abc[0].steps)
    assert row["flop"] == training_flop(Variant().experiment(0, abc[0].steps))
