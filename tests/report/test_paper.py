"""The page of both papers: verdicts by word, protocols in sight, commands, nothing from outside."""

import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hopscope.papers.claim import Claim, Finding, Reason
from hopscope.papers.results_folder import Results
from hopscope.papers.row import Row
from hopscope.papers.table import Table
from hopscope.papers.target import Target
from hopscope.report.look import Picture, picture
from hopscope.report.paper import counts, paper_page


class Measured(Row):
    loss: float


CLAIMS = {
    claim.id: claim
    for claim in (
        Claim(
            "musat/above-0.7",
            "A loss stays above 0.7 & the other falls",
            "§7, figure 4",
            "> 0.7",
            "all of 8 seeds, ±0.02",
            ("musat/fig4",),
            lambda tables: Finding(f"{tables[0].of(Measured)[0].loss}", "reproduced", "8 seeds"),
        ),
        Claim(
            "musat/plateau",
            "There is a plateau",
            "§7.1",
            "none",
            "slope of the loss",
            ("musat/fig4", "musat/fig5"),
            lambda tables: Finding("", "reproduced", ""),
        ),
        Claim(
            "chen/winner",
            "Stage I picks the parents",
            "theorem 3.2",
            "all",
            "20 seeds",
            ("chen/stages",),
            lambda tables: Finding("19 of 20; never", "not reproduced", "20 seeds <full>"),
            reason=Reason("Seed 3 is <stuck>.", "hopscope runs --store here"),
        ),
    )
}
TARGETS = {
    target.name: target
    for target in (
        Target("musat/fig4", "Figure 4: losses", (Measured,), method="Eight seeds."),
        Target("musat/fig5", "Figure 5: maps", (Measured,)),
        Target("chen/stages", "Figure 2: three stages", (Measured,)),
    )
}


def draw(table: Table, others: Callable[[str], Table | None]) -> Sequence[tuple[str, Picture]]:
    figure = picture(f'"{table.target}" by layer', "", 2.0)
    figure.subplots().plot([row.loss for row in table.of(Measured)])
    return [("loss", figure)]


@pytest.fixture
def results(tmp_path: Path) -> Results:
    made = Results(tmp_path / "results", TARGETS)
    rows = (Measured(loss=0.72), Measured(loss=0.1))
    made.save(Table("musat/fig4", "reduced", rows, "2 seeds instead of 8", machine="A, 2 cores"))
    made.save(Table("chen/stages", "full", rows, machine="B, 4 cores"))
    return made


def section(text: str, anchor: str) -> str:
    found = re.search(rf'<section id="{anchor}">(.*?)</section>', text, re.DOTALL)
    assert found
    return found[1]


class Balance(HTMLParser):
    """Says whether every element that is opened is closed, and in order."""

    ALONE = (
        "br",
        "meta",
    )

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.ALONE:
            self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href" and tag == "a"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_every_claim_has_a_row_with_both_values_and_the_verdict_as_a_word(results: Results) -> None:
    table = section(paper_page(CLAIMS, TARGETS, results, draw), "claims")
    rows = re.findall(r"<details>.*?</details>", table)
    assert len(rows) == 3
    above, plateau, winner = rows
    for shown in ("above 0.7 &amp; the", "§7, figure 4", "&gt; 0.7", "0.72", "±0.02", "8 seeds"):
        assert shown in above
    assert '<span class="verdict reproduced">reproduced</span>' in above
    assert '<span class="verdict not-measured">not measured</span>' in plateau
    assert "<code>hopscope reproduce musat/fig5</code>" in plateau
    assert '<span class="verdict not-reproduced">not reproduced</span>' in winner
    assert "20 seeds &lt;full&gt;" in winner
    assert "<dd>19 of 20<br>never</dd>" in winner  # each clause in a line of its own
    assert "<dt>why</dt><dd>Seed 3 is &lt;stuck&gt;.<pre><code>hopscope runs" in winner
    assert "<dt>why</dt>" not in above + plateau


def test_claims_stand_below_their_paper(results: Results) -> None:
    table = section(paper_page(CLAIMS, TARGETS, results, draw), "claims")
    places = [table.index(word) for word in ("Musat, Mech", "plateau", "Unveiling", "Stage I")]
    assert places == sorted(places)


def test_a_protocol_that_is_not_full_says_what_it_leaves_out(results: Results) -> None:
    text = paper_page(CLAIMS, TARGETS, results, draw)
    assert "<strong>reduced protocol:</strong> 2 seeds instead of 8" in section(text, "musat-fig4")
    assert "not measured yet" in section(text, "musat-fig5")
    assert "full protocol" in section(text, "chen-stages")
    assert "<strong>" not in section(text, "chen-stages")


def test_a_section_has_method_figures_machine_claims_and_command(results: Results) -> None:
    shown = section(paper_page(CLAIMS, TARGETS, results, draw), "musat-fig4")
    assert "<h2>Figure 4: losses</h2>" in shown
    assert "Eight seeds." in shown
    assert 'role="img" aria-label="&quot;musat/fig4&quot; by layer"' in shown
    assert "2 rows, measured with hopscope" in shown
    assert "A, 2 cores" in shown
    command = re.sub("<[^>]*>", "", shown[shown.index("<pre>") :])
    assert command == "hopscope reproduce musat/fig4 --protocol reduced"
    assert shown.count('href="#claim-') == 2


def test_what_was_not_measured_has_its_command_and_no_figure(results: Results) -> None:
    shown = section(paper_page(CLAIMS, TARGETS, results, draw), "musat-fig5")
    assert "<svg" not in shown
    assert "<code>hopscope reproduce musat/fig5</code>" in shown


def test_the_end_says_how_to_rerun_everything_and_where_it_ran(results: Results) -> None:
    shown = section(paper_page(CLAIMS, TARGETS, results, draw), "again")
    assert re.findall(r"hopscope reproduce (\w+)", shown) == ["musat", "chen"]
    assert "A, 2 cores" in shown
    assert "B, 4 cores" in shown


def test_the_page_is_whole_and_every_link_leads_somewhere(results: Results) -> None:
    parser = Balance()
    parser.feed(paper_page(CLAIMS, TARGETS, results, draw))
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    assert parser.links
    assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)


def test_the_page_needs_no_network_and_no_script(results: Results) -> None:
    text = paper_page(CLAIMS, TARGETS, results, draw)
    assert not re.search(r"<(script|link|img|iframe)|src=|@import", text)
    names = r"w3\.org|matplotlib\.org|purl\.org|creativecommons\.org"  # of SVG's vocabularies
    assert all(re.search(names, url) for url in re.findall(r"https?://[^\s\"<]+", text))


def test_the_same_results_give_the_same_page(results: Results) -> None:
    first, second = (paper_page(CLAIMS, TARGETS, results, draw) for _ in range(2))
    assert first == second


def test_without_any_results_the_page_is_a_list_of_what_to_measure(tmp_path: Path) -> None:
    text = paper_page(CLAIMS, TARGETS, Results(tmp_path / "none", TARGETS), draw)
    assert "3 claims, 3 figures and tables, 0 of them measured" in text
    assert "<svg" not in text
    assert text.count(">not measured</span>") == 1 + 3 + 4  # key, table, sections


def test_counts_have_every_verdict() -> None:
    found = counts([Finding("", "reproduced", ""), Finding("", "reproduced", "")])
    assert list(found.items()) == [
        ("reproduced", 2),
        ("not reproduced", 0),
        ("under a reading", 0),
        ("not measured", 0),
    ]
