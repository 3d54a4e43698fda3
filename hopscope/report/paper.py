"""The papers on one page: what they say, what we measured, and how to measure it again.

Nothing on it is typed by hand: verdicts and figures come from the tables of results alone, so the
same tables give the same page.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import get_args

from hopscope import __version__
from hopscope.papers.claim import Claim, Finding, Verdict
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table
from hopscope.papers.target import Target
from hopscope.report.look import Picture
from hopscope.report.page import Section, figure_html, page, prose

Drawn = Sequence[tuple[str, Picture]]
"""Figures, each with a short name."""
Draw = Callable[[Table, Callable[[str], Table | None]], Drawn]
"""The figures of a table, which may show another one (asked for by name) as well."""

PAPERS = {
    "musat": "Musat, Mechanism and Emergence of Stacked Attention Heads in Multi-Layer "
    "Transformers (ICLR 2025)",
    "chen": "Chen, Sheen, Wang and Yang, Unveiling Induction Heads (NeurIPS 2024)",
}
MEANING: Mapping[Verdict, str] = {
    "reproduced": "our value is the paper’s, within the tolerance that is stated",
    "not reproduced": "our value is another",
    "under a reading": "the paper leaves a choice open, or less was run than the paper did; it is "
    "so under what is named",
    "not measured": "no result decides it yet; what would is named",
}
COLUMNS = ("Claim", "Paper", "Ours", "Verdict", "Evidence")
STYLE = """
:root { --good: #1b6b3f; --bad: #b3261e; --open: #8a5800; --card: #f5f5f1 }
@media (prefers-color-scheme: dark) {
  :root { --good: #7bd3a0; --bad: #ff9389; --open: #e2b457; --card: #1f1f25 }
}
body { max-width: 76rem; padding: 1rem clamp(1rem, 3vw, 2.5rem); overflow-wrap: anywhere }
h2 { line-height: 1.3; margin-bottom: .2rem }
section { margin-top: 3rem } section p { margin: .5rem 0 }
a { color: inherit; text-decoration-color: var(--dim); text-underline-offset: .15em }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; white-space: pre-wrap; max-width: 44rem; box-sizing: border-box }
.flag { display: inline-block }
figure { width: fit-content; max-width: 100% }
figure svg { max-width: max(100%, 30rem) } /* narrow screens scroll */
.verdict { font-weight: 600; white-space: nowrap } .reproduced { color: var(--good) }
.not-reproduced { color: var(--bad) } .under-a-reading { color: var(--open) }
.not-measured { color: var(--dim) }
.counts { display: grid; grid-template-columns: auto auto 1fr; gap: .15rem .8rem; max-width: 44rem }
.counts > * { margin: 0 } .counts .number { text-align: right; font-variant-numeric: tabular-nums }
.short { border-left: 3px solid var(--open); padding-left: .7rem }
.short strong { color: var(--open) }
.judged { list-style: none; padding: 0; max-width: 44rem } .judged li { margin: .3rem 0 }
.claims { table-layout: fixed; width: 100%; line-height: 1.45; margin: 1rem 0 }
.claims th, .claims td { padding: .6rem 1.2rem .6rem 0 } .claims td p { margin: 0 0 .25rem }
.claims th:nth-child(1) { width: 26% } .claims th:nth-child(2) { width: 13% }
.claims th:nth-child(4) { width: 9.5rem } .claims th:nth-child(5) { width: 28% }
.claims th.paper { color: var(--ink); font-weight: 600; padding-top: 1.6rem; width: auto }
.claims tr:target td { background: var(--card) }
.claims .key { display: none }
@media (max-width: 64rem) {
  .claims, .claims tbody { display: block }
  .claims thead { display: none } .claims .group, .claims th.paper { display: block; border: 0 }
  .claims .claim { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem 1rem;
    background: var(--card); border: 1px solid var(--line); border-radius: 6px;
    padding: .8rem; margin: .7rem 0 }
  .claims td { padding: 0; border: 0; min-width: 0 }
  .claims td:is(:nth-child(1), :nth-child(4), :nth-child(5)) { grid-column: 1 / -1 }
  .claims .key { display: block; color: var(--dim); font-size: .85em }
  .claims td:is(:nth-child(1), :nth-child(4)) .key { display: none }
  .counts { grid-template-columns: auto 1fr } .counts dd { grid-column: 2 }
}
"""


def paper_page(
    claims: Mapping[str, Claim], targets: Mapping[str, Target], results: Results, draw: Draw
) -> str:
    """Every claim with its verdict, then everything that was measured, then how to do it again."""
    judged = [(claim, claim.finding(results)) for claim in claims.values()]
    found = {name: results.shown(name) for name in targets}
    tables = {name: table for name, table in found.items() if table is not None}
    return page(
        "Two papers, measured again",
        f"{len(claims)} claims, {len(targets)} figures and tables, "
        f"{sum(not table.missing for table in tables.values())} of them measured.",
        [
            _introduction(judged),
            Section("The claims", "", [_claims_table(judged, targets)], anchor="claims"),
            *(
                _target(one, tables.get(name), judged, lambda table: draw(table, tables.get))
                for name, one in targets.items()
            ),
            _again(targets, tables),
        ],
        STYLE,
    )


def counts(findings: Iterable[Finding]) -> dict[Verdict, int]:
    """How many claims have each verdict; a verdict that none has is there with 0."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict: found[verdict] for verdict in get_args(Verdict)}


def _introduction(judged: Sequence[tuple[Claim, Finding]]) -> Section:
    papers = "".join(f"<li>{escape(paper)}</li>" for paper in PAPERS.values())
    lines = [
        f'<span class="number">{number}</span><dt>{_verdict(verdict)}</dt>'
        f'<dd class="dim">{MEANING[verdict]}</dd>'
        for verdict, number in counts(finding for _, finding in judged).items()
    ]
    return Section(
        "What this is",
        "hopscope implements two papers on how attention heads build on one another. Here is what "
        "they say beside what we measured. A program judges every claim from small files of rows, "
        "and draws every figure from the same files; each section ends with the command that "
        "measures its rows again.",
        [f"<ul>{papers}</ul>", f'<dl class="counts">{"".join(lines)}</dl>'],
    )


def _verdict(verdict: Verdict) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _claims_table(judged: Sequence[tuple[Claim, Finding]], targets: Mapping[str, Target]) -> str:
    """A row for each claim; narrow screens show it as a card, each cell under its own key.

    The roles repeat what the elements are, since browsers drop that once CSS sets another `display`
    on a table.
    """
    head = "".join(f'<th role="columnheader">{column}</th>' for column in COLUMNS)
    body = ""
    for paper, group in groupby(judged, lambda pair: pair[0].id.partition("/")[0]):
        body += (
            f'<tr role="row" class="group"><th role="rowheader" class="paper" '
            f'colspan="{len(COLUMNS)}">{escape(PAPERS.get(paper, paper))}</th></tr>'
        )
        body += "".join(_claim_row(claim, finding, targets) for claim, finding in group)
    return (
        f'<table role="table" class="claims"><thead role="rowgroup"><tr role="row">{head}</tr>'
        f'</thead><tbody role="rowgroup">{body}</tbody></table>'
    )


def _claim_row(claim: Claim, finding: Finding, targets: Mapping[str, Target]) -> str:
    links = ", ".join(
        f'<a href="#{_anchor(name)}">{escape(name)}</a>'
        for name in claim.targets
        if name in targets
    )
    source = f"{escape(claim.where)} · <code>{escape(claim.id)}</code>"
    cells = (
        f'<p>{prose(claim.says)}</p><p class="dim">{source}</p>',
        prose(claim.paper),
        prose(finding.ours),
        _verdict(finding.verdict),
        f'<p>{prose(finding.evidence)}</p><p class="dim">{prose(claim.how)}</p>'
        + (f'<p class="dim">{prose(finding.basis)}</p>' if finding.basis else "")
        + (f'<p class="dim">see {links}</p>' if links else ""),
    )
    row = "".join(
        f'<td role="cell"><span class="key" aria-hidden="true">{column}</span>{cell}</td>'
        for column, cell in zip(COLUMNS, cells, strict=True)
    )
    return f'<tr role="row" class="claim" id="claim-{_anchor(claim.id)}">{row}</tr>'


def _target(
    target: Target,
    table: Table | None,
    judged: Sequence[tuple[Claim, Finding]],
    draw: Callable[[Table], Drawn],
) -> Section:
    anchor = _anchor(target.name)
    body = [
        f'<p class="dim"><code>{escape(target.name)}</code></p>',
        f"<p>{prose(target.method)}</p>" if target.method else "",
        _protocol(table),
        _judged_from(target, judged),
    ]
    if table:
        body += [figure_html(figure) for _, figure in draw(table)]
        body.append(
            f'<p class="dim">{len(table.rows):,} rows, measured with hopscope '
            f"{escape(table.hopscope)} on {escape(table.machine or 'an unknown machine')}.</p>"
        )
    body.append(_commands([_reproduce(target, table)]))
    return Section(target.shows, "", body, anchor)


def _protocol(table: Table | None) -> str:
    """How much of the paper's experiment was run, in words that cannot be overlooked."""
    if table is None:
        return '<p class="short"><strong>not measured yet</strong></p>'
    if table.missing:
        told = f"{len(table.runs)} of {table.wanted} runs so far ({table.protocol} protocol)"
        return f'<p class="short"><strong>{told}</strong></p>'
    if table.protocol == "full":
        remark = f": {prose(table.remark)}" if table.remark else ""
        return f'<p class="dim">full protocol{remark}</p>'
    remark = prose(table.remark) or "what it leaves out was not noted"
    return f'<p class="short"><strong>{table.protocol} protocol:</strong> {remark}</p>'


def _judged_from(target: Target, judged: Sequence[tuple[Claim, Finding]]) -> str:
    """The claims that are judged from this target's rows."""
    lines = "".join(
        f"<li>{_verdict(finding.verdict)} "
        f'<a href="#claim-{_anchor(claim.id)}">{prose(claim.says)}</a></li>'
        for claim, finding in judged
        if target.name in claim.targets
    )
    return f'<ul class="judged">{lines}</ul>' if lines else ""


def _again(targets: Mapping[str, Target], tables: Mapping[str, Table]) -> Section:
    papers = dict.fromkeys(name.partition("/")[0] for name in targets)
    machines = dict.fromkeys(
        f"hopscope {table.hopscope}: {table.machine}" for table in tables.values() if table.machine
    )
    measured = "".join(f"<li>{escape(line)}</li>" for line in machines)
    return Section(
        "Everything again",
        "From a checkout, with Python 3.11 or later. With `--protocol full` it is the papers’ own "
        "size; without, what two cores can do. Runs that are there already are not trained again; "
        "claims and page need no training at all.",
        [
            _commands(
                [
                    "pip install -e .",
                    *(f"hopscope reproduce {paper}" for paper in papers),
                    "hopscope claims",
                    "hopscope report",
                ]
            ),
            f"<p>This page was written by hopscope {__version__}"
            + (f" from what was measured by</p><ul>{measured}</ul>" if measured else ".</p>"),
        ],
        anchor="again",
    )


def _reproduce(target: Target, table: Table | None) -> str:
    """The command that measures the rows shown, or, where there are none, the first."""
    protocol = f" --protocol {table.protocol}" if table else ""
    return f"hopscope reproduce {target.name}{protocol}"


def _commands(lines: Iterable[str]) -> str:
    """Lines for a terminal, broken before a flag where the screen is narrow, and not inside it."""
    text = re.sub(r"--\S+ \S+", r'<span class="flag">\g<0></span>', escape("\n".join(lines)))
    return f"<pre><code>{text}</code></pre>"


def _anchor(name: str) -> str:
    """A name of ours as an id: `musat/fig4` is musat-fig4."""
    return escape(name.replace("/", "-"), quote=True)
