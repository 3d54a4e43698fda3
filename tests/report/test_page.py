"""Pages: nothing from outside, nothing that is not escaped, no two elements of one name."""

import re

from hopscope.circuits import Circuit
from hopscope.report.circuit import circuit_figure
from hopscope.report.page import Section, figure_html, list_html, page, table_html


def test_a_page_needs_no_network_and_escapes_what_it_shows(circuit: Circuit) -> None:
    figure = figure_html(circuit_figure(circuit, of='a "circuit"'))
    text = page(
        "t <1>", "s", [Section("a & b", "c", [figure, table_html(["h"], [["<x>"]]), list_html([])])]
    )
    assert "t &lt;1&gt;" in text
    assert "&lt;x&gt;" in text
    assert 'aria-label="a &quot;circuit&quot;. ' in text
    assert not re.search(r"<(script|link|img|iframe)|src=", text)
    names = r"w3\.org|matplotlib\.org|purl\.org|creativecommons\.org"  # of SVG's vocabularies
    assert all(re.search(names, url) for url in re.findall(r"https?://[^\s\"<]+", text))


def test_figures_of_one_page_do_not_share_ids(circuit: Circuit) -> None:
    ids = [
        set(re.findall(r'id="([^"]+)"', figure_html(circuit_figure(circuit, of=name))))
        for name in ("one", "two")
    ]
    assert ids[0]
    assert not ids[0] & ids[1]
