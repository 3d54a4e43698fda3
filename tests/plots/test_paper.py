"""The page of both papers: verdicts by word, protocols in sight, commands, nothing from outside."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from three_claims import THREE, Measured, measured

from hopscope.circuits import Circuit
from hopscope.papers.judge import Finding
from hopscope.papers.registry import PAPERS
from hopscope.papers.results import Results, ResultsTable
from hopscope.plots.circuit import circuit_figure
from hopscope.plots.look import Picture, picture
from hopscope.plots.page import figure_html, list_html, page, section_html, table_html
from hopscope.plots.paper import counts, paper_page
from hopscope.plots.readme import readme
from tests.plots.balance import Balance


def draw(
    table: ResultsTable, others: Callable[[str], ResultsTable | None]
) -> Sequence[tuple[str, Picture]]:
    figure = picture(f'"{table.experiment}" by layer', "", 2.0)
    figure.subplots().plot([row.loss for row in table.of(Measured)])
    return [("loss", figure)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return measured(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def text(results: Results) -> str:
    return paper_page(THREE, results, draw)


def section(text: str, anchor: str) -> str:
    found = re.search(rf'<section id="{anchor}">(.*?)</section>', text, re.DOTALL)
    assert found
    return found[1]


def alone(text: str) -> bool:
    """Does a page need nothing from outside, and run nothing?"""
    names = r"w3\.org|matplotlib\.org|purl\.org|creativecommons\.org"  # of SVG's vocabularies
    addresses = re.findall(r"https?://[^\s\"<]+", text)
    outside = re.search(r"<(script|link|img|iframe)|src=|@import", text)
    return not outside and all(re.search(names, url) for url in addresses)


def test_every_claim_has_a_row_with_both_values_and_the_verdict_as_a_word(text: str) -> None:
    table = section(text, "claims")
    places = [table.index(word) for word in ("Musat, Mech", "is low", "Unveiling", "parents win")]
    assert places == sorted(places)  # below their paper
    above, below, winner = re.findall(r"<details>.*?</details>", table)
    for shown in ("stays high &amp; flat", "§7", "&gt; 0.7", "0.72 [seed 3]", "all &lt;seeds&gt;"):
        assert shown in above
    assert '<span class="verdict reproduced">reproduced</span>' in above
    assert '<span class="verdict not-measured">not measured</span>' in winner
    assert "<code>hopscope papers run chen/stages</code>" in winner
    assert '<span class="verdict not-reproduced">not reproduced</span>' in below
    assert "<dd>0.72<br>0.8 (one; two)</dd>" in below  # each clause in a line of its own
    assert "<dt>why</dt><dd>It is &lt;0.72&gt;.<pre><code>hopscope ablate" in below
    assert "<dt>why</dt>" not in above + winner


def test_the_page_is_whole_stands_alone_and_is_the_same_again(text: str, results: Results) -> None:
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    assert parser.links
    assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)
    assert alone(text)
    assert paper_page(THREE, results, draw) == text
    assert "<strong>reduced protocol:</strong> 2 seeds instead of 8" in text
    assert "The parents win \\| none" in readme(THREE, results)


def test_without_any_results_the_page_is_a_list_of_what_to_measure(tmp_path: Path) -> None:
    text = paper_page(THREE, THREE.results(tmp_path / "none"), draw)
    assert "3 claims, 3 figures and tables, 0 of them measured" in text
    assert "<svg" not in text
    assert text.count(">not measured</span>") == 1 + 3 + 3  # key, table, sections
    found = counts([Finding("reproduced"), Finding("reproduced")])
    assert [*found.values()] == [2, 0, 0, 0, 0, 0, 0]  # every verdict is counted


def test_pages_escape_what_they_show_and_their_figures_do_not_share_ids(circuit: Circuit) -> None:
    one, other = (figure_html(circuit_figure(circuit, of=name)) for name in ('a "circuit"', "b"))
    ids = [set(re.findall(r'id="([^"]+)"', each)) for each in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    parts = [one, table_html(["h"], [["<x>"]]), list_html([])]
    text = page("t <1>", "s", [section_html("a & b", "c", parts)])
    for words in ("t &lt;1&gt;", "&lt;x&gt;", 'aria-label="a &quot;circuit&quot;. '):
        assert words in text
    assert alone(text)


ROOT = Path(__file__).parents[2] / "results"


@pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="no results in this checkout")
def test_the_overview_in_the_repository_is_current() -> None:
    found = (ROOT / "README.md").read_text()
    assert found == readme(PAPERS, PAPERS.results(ROOT)), (
        "results/README.md is out of date: `hopscope papers run --draw` writes it anew"
    )
