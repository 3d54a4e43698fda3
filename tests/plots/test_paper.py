"""The page of both papers: verdicts by word, protocols in sight, commands, nothing from outside; in
a real browser nothing is cut off.
"""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hopscope.circuits import Circuit
from hopscope.configs import Experiment
from hopscope.papers.claim import Claim, Reason
from hopscope.papers.experiment import PaperExperiment
from hopscope.papers.judge import Finding, Judge
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.results import COMPUTED, Results, ResultsTable
from hopscope.papers.row import Row
from hopscope.plots.circuit import circuit_figure
from hopscope.plots.look import Picture, picture
from hopscope.plots.page import Section, figure_html, list_html, page, table_html
from hopscope.plots.paper import counts, paper_page
from hopscope.plots.readme import readme
from tests.browser.conftest import FLAGS, absent
from tests.plots.balance import Balance


class Measured(Row):
    loss: float


def judge(holds: bool, ours: str, evidence: str = "8 seeds") -> Judge[Any]:
    """Says so of any rows."""
    return Judge(Row, lambda _: holds, lambda rows: ours.format(*rows), no_seeds=evidence)


CLAIMS = {
    claim.id: claim
    for claim in (
        Claim(
            "musat/above-0.7", "A loss stays above 0.7 & the other falls", "§7, figure 4",
            "> 0.7", "all of 8 seeds, ±0.02", ("musat/fig4",),
            judge(True, "{0.loss}"),
        ),
        Claim(
            "musat/plateau", "There is a plateau | none", "§7.1", "none", "slope of the loss",
            ("musat/fig4", "musat/fig5"), judge(True, "–"),
        ),
        Claim(
            "chen/winner", "Stage I picks the parents", "theorem 3.2", "all", "20 seeds",
            ("chen/stages",),
            judge(False, "19 of 20; never", "20 seeds <full>"),
            reason=Reason("Seed 3 is <stuck>.", "hopscope runs --store here"),
        ),
    )
}  # fmt: skip
EXPERIMENTS = {
    each.name: each
    for each in (
        PaperExperiment(
            "musat/fig4", "Figure 4: losses", (Measured,), method="Eight seeds.",
            recipes={"reduced": lambda: (Experiment(),)}, reduced="2 seeds instead of 8",
        ),
        PaperExperiment("musat/fig5", "Figure 5: maps", (Measured,)),
        PaperExperiment("chen/stages", "Figure 2: three stages", (Measured,)),
    )
}  # fmt: skip
TWO = Registry(EXPERIMENTS, CLAIMS)


def draw(
    table: ResultsTable, others: Callable[[str], ResultsTable | None]
) -> Sequence[tuple[str, Picture]]:
    figure = picture(f'"{table.experiment}" by layer', "", 2.0)
    figure.subplots().plot([row.loss for row in table.of(Measured)])
    return [("loss", figure)]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    made = TWO.results(tmp_path_factory.mktemp("results"))
    rows = (Measured(loss=0.72), Measured(loss=0.1))
    made.keep("musat/fig4", Experiment().run_name(), rows, "A, 2 cores")
    made.keep("chen/stages", COMPUTED, rows, "B, 4 cores")
    return made


@pytest.fixture(scope="module")
def text(results: Results) -> str:
    return paper_page(TWO, results, draw)


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
    places = [table.index(word) for word in ("Musat, Mech", "plateau", "Unveiling", "Stage I")]
    assert places == sorted(places)  # below their paper
    above, plateau, winner = re.findall(r"<details>.*?</details>", table)
    for shown in ("above 0.7 &amp; the", "§7, figure 4", "&gt; 0.7", "0.72", "±0.02", "8 seeds"):
        assert shown in above
    assert '<span class="verdict reproduced">reproduced</span>' in above
    assert '<span class="verdict not-measured">not measured</span>' in plateau
    assert "<code>hopscope papers run musat/fig5</code>" in plateau
    assert '<span class="verdict not-reproduced">not reproduced</span>' in winner
    assert "20 seeds &lt;full&gt;" in winner
    assert "<dd>19 of 20<br>never</dd>" in winner  # each clause in a line of its own
    assert "<dt>why</dt><dd>Seed 3 is &lt;stuck&gt;.<pre><code>hopscope runs" in winner
    assert "<dt>why</dt>" not in above + plateau


def test_the_page_is_whole_stands_alone_and_is_the_same_again(text: str, results: Results) -> None:
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    assert parser.links
    assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)
    assert alone(text)
    assert paper_page(TWO, results, draw) == text
    assert "There is a plateau \\| none" in readme(TWO, results)


def test_without_any_results_the_page_is_a_list_of_what_to_measure(tmp_path: Path) -> None:
    text = paper_page(TWO, TWO.results(tmp_path / "none"), draw)
    assert "3 claims, 3 figures and tables, 0 of them measured" in text
    assert "<svg" not in text
    assert text.count(">not measured</span>") == 1 + 3 + 4  # key, table, sections
    found = counts([Finding("reproduced"), Finding("reproduced")])
    assert [*found.values()] == [2, 0, 0, 0, 0, 0, 0]  # every verdict is counted


def test_pages_escape_what_they_show_and_their_figures_do_not_share_ids(circuit: Circuit) -> None:
    one, other = (figure_html(circuit_figure(circuit, of=name)) for name in ('a "circuit"', "b"))
    ids = [set(re.findall(r'id="([^"]+)"', each)) for each in (one, other)]
    assert ids[0]
    assert not ids[0] & ids[1]
    parts = [one, table_html(["h"], [["<x>"]]), list_html([])]
    text = page("t <1>", "s", [Section("a & b", "c", parts)])
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


WIDTHS = (360, 768, 1400)
SEEN = """() => {
  document.querySelectorAll("details").forEach(one => one.open = true);
  const page = document.documentElement, spills = one => one.scrollWidth > one.clientWidth;
  const texts = [...document.querySelectorAll("h1, h2, p, li, dt, dd, th, td")];
  return [spills(page), texts.filter(spills).map(one => one.textContent)];
}"""
"""Is the page wider than its window, and which texts are wider than their place?"""
WRONG = (
    '<div style="width: 800px">wide</div><script>nowhere()</script>'
    '<p style="width: 9px; overflow-wrap: normal">spilling</p></body>'
)


def draw_wide(
    table: ResultsTable, others: Callable[[str], ResultsTable | None]
) -> Sequence[tuple[str, Picture]]:
    wide = Picture("a wide figure", "It is wide.", (16.0, 3.0))
    small = Picture("small", "It is not.", (2.0, 2.0))
    for figure in (wide, small):
        figure.subplots().plot([0, 1])
    return [("wide", wide), ("small", small)]


@pytest.fixture
def hard_to_fit(tmp_path: Path) -> str:
    """A page with what is hard to fit: long names, long words, many columns of words."""
    name = "musat/a-figure-with-a-name-that-does-not-fit-on-the-screen-of-a-phone"
    claim = Claim(
        f"{name}/and-its-claim", f"What `{'a-formula-without-a-break' * 4}` says",
        "§7.1, figure 4 and appendix B.2", "0.123456789 ± 0.000001",
        "The mean over every seed and hop. " * 5, (name,),
        judge(False, "0.5 " * 20, f"runs {'x' * 90}"),
    )  # fmt: skip
    missing = Claim("chen/one", "Short", "§1", "1", "once", ("chen/none",), claim.judge)
    experiments = {
        name: PaperExperiment(name, "Figure 4: " + "losses " * 20, (Row,), method=name),
        "chen/none": PaperExperiment("chen/none", "nothing", (Row,)),
    }
    papers = Registry(experiments, {claim.id: claim, missing.id: missing})
    results = papers.results(tmp_path / "results")
    results.keep(name, COMPUTED, [Row()], "m" * 80)
    return paper_page(papers, results, draw_wide)


@pytest.fixture
def browser_page() -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None:
        absent("no Chromium: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS])
        yield browser.new_page()
        browser.close()


def test_nothing_is_cut_off_on_any_screen(
    browser_page: Any, tmp_path: Path, hard_to_fit: str
) -> None:
    """What is too wide or wrong would be seen."""
    page, complaints = browser_page, list[str]()
    page.on("console", lambda said: complaints.append(said.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    file = tmp_path / "page.html"
    for harm in ("", WRONG):
        file.write_text(hard_to_fit.replace("</body>", harm) if harm else hard_to_fit)
        page.goto(file.as_uri())
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            wide, spilling = page.evaluate(SEEN)
            assert wide == (bool(harm) and width < 800), (width, spilling)
            assert spilling == ["spilling"] * bool(harm), width
        assert complaints == ["nowhere is not defined"] * bool(harm)
