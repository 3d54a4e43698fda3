"""The page of both papers: their claims, our measurements, and the commands to repeat them.

Verdicts and figures come only from the tables of results, so the same tables give the same page.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import get_args

from hopscope import __version__
from hopscope.papers.claim import Claim
from hopscope.papers.experiment import COMMAND, PaperExperiment
from hopscope.papers.judge import Finding, Verdict
from hopscope.papers.registry import Registry
from hopscope.papers.results import Results, ResultsTable
from hopscope.plots.layout import clauses
from hopscope.plots.look import NamedPicture
from hopscope.plots.page import figure_html, page, prose_html, section_html

Draw = Callable[[ResultsTable, Callable[[str], ResultsTable | None]], Sequence[NamedPicture]]
"""Draws the figures of a table; it may request other tables by name."""

PAPER_TITLES = {
    "musat": "Musat, Mechanism and Emergence of Stacked Attention Heads in Multi-Layer "
    "Transformers (ICLR 2025)",
    "chen": "Chen, Sheen, Wang and Yang, Unveiling Induction Heads (NeurIPS 2024)",
}
MEANING: Mapping[Verdict, str] = {
    "reproduced": "our value is the paper’s, within the tolerance that is stated",
    "not reproduced": "our value is another",
    "depends on an open choice": "the paper leaves a choice open, and it holds for some choices, "
    "which are named",
    "at smaller scale": "it holds with less training than the paper’s, which cannot confirm it",
    "needs larger models": "the claim is about large language models; none of those that we asked "
    "is as large, and none of them does it",
    "not enough seeds": "fewer than three models, so that chance may decide",
    "not measured": "no result of ours decides it; what would, or why ours do not, is named",
}
STYLE = """
:root { --good: #1b6b3f; --bad: #b3261e; --open: #8a5800; --card: #f5f5f1 }
@media (prefers-color-scheme: dark) {
  :root { --good: #7bd3a0; --bad: #ff9389; --open: #e2b457; --card: #1f1f25 }
}
body { max-width: 76rem; padding: 1rem clamp(1rem, 3vw, 2.5rem); overflow-wrap: anywhere }
h2 { line-height: 1.3; margin-bottom: .2rem } h3 { font-size: 1rem; margin: 1.6rem 0 0 }
section { margin-top: 3rem } section p { margin: .5rem 0 }
a { color: inherit; text-decoration-color: var(--dim); text-underline-offset: .15em }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; white-space: pre-wrap; max-width: 44rem; box-sizing: border-box }
.flag { display: inline-block }
figure { width: fit-content; max-width: 100% }
figure svg { max-width: max(100%, 30rem) } /* narrow screens scroll */
.verdict { font-weight: 600; white-space: nowrap } .reproduced { color: var(--good) }
.not-reproduced { color: var(--bad) } .depends-on-an-open-choice { color: var(--open) }
.needs-larger-models { color: var(--open) } .not-measured { color: var(--dim) }
.counts div { display: grid; grid-template-columns: 16rem 1fr; gap: .15rem .8rem; max-width: 46rem }
.counts dd { margin: 0 } .counts .number { display: inline-block; width: 2ch; text-align: right;
  margin-right: .5rem; font-variant-numeric: tabular-nums }
.short { border-left: 3px solid var(--open); padding-left: .7rem }
.short strong { color: var(--open) }
.judged { list-style: none; padding: 0; max-width: 44rem } .judged li { margin: .3rem 0 }
.claims { list-style: none; padding: 0; margin: .5rem 0 0 }
.claims li { border-top: 1px solid var(--line) }
.claims summary { display: grid; grid-template-columns: 9rem 1fr 1rem; gap: .2rem 1rem;
  padding: .55rem 0; cursor: pointer; list-style: none }
.claims summary::-webkit-details-marker { display: none }
.claims summary::after { content: "+"; color: var(--dim); text-align: center }
.claims [open] summary::after { content: "\\2212" }
.claims summary:hover { background: var(--card) }
.claims dl { display: grid; grid-template-columns: 5rem 1fr; gap: .35rem 1rem; max-width: 56rem;
  margin: 0 0 1rem; padding-left: 10rem; scroll-margin-top: 5rem }
.claims dt { color: var(--dim) } .claims dd { margin: 0 }
@media print { details::details-content { content-visibility: visible; block-size: auto } }
@media (max-width: 48rem) {
  .claims summary { grid-template-columns: 1fr 1rem }
  .claims summary .verdict { grid-column: 1; grid-row: 2 }
  .claims dl { grid-template-columns: 1fr; gap: 0; padding-left: 0 }
  .claims dd { margin-bottom: .5rem }
  .counts div { grid-template-columns: 1fr; margin-bottom: .4rem }
}
"""


def paper_page(papers: Registry, results: Results, draw: Draw) -> str:
    """Return the page: every claim with its verdict, all measurements, and how to repeat them."""
    judged, experiments = papers.judged("", results), papers.experiments
    found = {name: results.shown(name) for name in experiments}
    tables = {name: table for name, table in found.items() if table is not None}
    return page(
        "Two papers, measured again",
        f"{len(judged)} claims, {len(experiments)} figures and tables, "
        f"{sum(not table.missing for table in tables.values())} of them measured.",
        [
            _introduction(judged),
            section_html(
                "The claims",
                "A line opens to the paper’s value, ours and the evidence.",
                _claims(judged, experiments),
                anchor="claims",
            ),
            *(
                _experiment(one, tables.get(name), judged, lambda table: draw(table, tables.get))
                for name, one in experiments.items()
            ),
            _again(experiments, tables),
        ],
        STYLE,
    )


def counts(findings: Iterable[Finding]) -> dict[Verdict, int]:
    """Count the claims of each verdict; verdicts without claims have 0."""
    found = Counter(finding.verdict for finding in findings)
    return {verdict: found[verdict] for verdict in get_args(Verdict)}


def _introduction(judged: Sequence[tuple[Claim, Finding]]) -> str:
    papers = "".join(f"<li>{escape(paper)}</li>" for paper in PAPER_TITLES.values())
    lines = [
        f'<div><dt><span class="number">{number}</span> {_verdict(verdict)}</dt>'
        f'<dd class="dim">{MEANING[verdict]}</dd></div>'
        for verdict, number in counts(f for claim, f in judged if claim.origin == "paper").items()
    ]
    ours = sum(claim.origin == "ours" for claim, _ in judged)
    return section_html(
        "What this is",
        "hopscope implements two papers on how attention heads build on one another. Here is what "
        "they say beside what we measured. A program judges every claim from small files of rows, "
        "and draws every figure from the same files; each section ends with the command that "
        "measures its rows again.",
        [
            f"<ul>{papers}</ul>",
            f'<dl class="counts">{"".join(lines)}</dl>',
            f"<p>These are the papers’ claims. {ours} more are ours, and say so.</p>" * (ours > 0),
        ],
    )


def _verdict(verdict: Verdict) -> str:
    return f'<span class="verdict {verdict.replace(" ", "-")}">{verdict}</span>'


def _claims(
    judged: Sequence[tuple[Claim, Finding]], experiments: Mapping[str, PaperExperiment]
) -> list[str]:
    """Return the claims of each paper with their verdicts; each opens to values and evidence."""
    shown = []
    for paper, group in groupby(judged, lambda pair: pair[0].id.partition("/")[0]):
        lines = "".join(_claim(claim, finding, experiments) for claim, finding in group)
        shown.append(
            f'<h3>{escape(PAPER_TITLES.get(paper, paper))}</h3><ul class="claims">{lines}</ul>'
        )
    return shown


def _claim(claim: Claim, finding: Finding, experiments: Mapping[str, PaperExperiment]) -> str:
    """Return one claim. The target of links is inside the fold, so that a link opens it."""
    links = ", ".join(
        f'<a href="#{_anchor(name)}">{escape(name)}</a>'
        for name in claim.sources
        if name in experiments
    )
    why = claim.why(finding)
    told = {
        "where": escape(claim.where),
        "paper": prose_html(claim.paper),
        "ours": _lines(finding.ours),
        "says so": "hopscope, and not the paper" if claim.origin == "ours" else "",
        "evidence": _lines(finding.evidence),
        "chance": _chance(finding),
        "notes": "<br>".join(map(prose_html, finding.notes)),
        "why": prose_html(why.says) + _commands([why.command]) if why else "",
        "cost": "<br>".join(map(prose_html, finding.cost)),
        "how": prose_html(claim.how),
        "from": links,
        "name": f"<code>{escape(claim.id)}</code>",
    }
    rows = "".join(f"<dt>{key}</dt><dd>{value}</dd>" for key, value in told.items() if value)
    return (
        f"<li><details><summary>{_verdict(finding.verdict)}<span>{prose_html(claim.says)}</span>"
        f'</summary><dl id="claim-{_anchor(claim.id)}">{rows}</dl></details></li>'
    )


def _chance(finding: Finding) -> str:
    """Return the result of the permutation test in words."""
    if finding.chance is None:
        return ""
    return (
        "if variants made no difference, models of one would agree as well with probability "
        f"{finding.chance:.2g}"
    )


def _lines(text: str) -> str:
    """Return each clause on its own line."""
    return "<br>".join(map(prose_html, clauses(text)))


def _experiment(
    experiment: PaperExperiment,
    table: ResultsTable | None,
    judged: Sequence[tuple[Claim, Finding]],
    draw: Callable[[ResultsTable], Sequence[NamedPicture]],
) -> str:
    anchor = _anchor(experiment.name)
    body = [
        f'<p class="dim"><code>{escape(experiment.name)}</code></p>',
        f"<p>{prose_html(experiment.method)}</p>" if experiment.method else "",
        _protocol(table),
        _judged_from(experiment, judged),
    ]
    if table:
        body += [figure_html(figure) for _, figure in draw(table)]
        body.append(
            f'<p class="dim">{len(table.rows):,} rows, measured with hopscope '
            f"{escape(' / '.join(table.versions))} on {escape(' / '.join(table.machines))}.</p>"
        )
    body.append(_commands([_reproduce(experiment, table)]))
    return section_html(experiment.shows, "", body, anchor)


def _protocol(table: ResultsTable | None) -> str:
    """Return how much of the paper's experiment was run, marked unless it is the full protocol."""
    if table is None:
        return '<p class="short"><strong>not measured yet</strong></p>'
    if table.missing:
        told = f"{table.progress} so far ({table.protocol} protocol)"
        return f'<p class="short"><strong>{told}</strong></p>'
    if table.protocol == "full":
        remark = f": {prose_html(table.remark)}" if table.remark else ""
        return f'<p class="dim">full protocol{remark}</p>'
    remark = prose_html(table.remark) or "what it leaves out was not noted"
    return f'<p class="short"><strong>{table.protocol} protocol:</strong> {remark}</p>'


def _judged_from(experiment: PaperExperiment, judged: Sequence[tuple[Claim, Finding]]) -> str:
    """Return the claims that are judged from an experiment's rows."""
    lines = "".join(
        f"<li>{_verdict(finding.verdict)} "
        f'<a href="#claim-{_anchor(claim.id)}">{prose_html(claim.says)}</a></li>'
        for claim, finding in judged
        if experiment.name in claim.sources
    )
    return f'<ul class="judged">{lines}</ul>' if lines else ""


def _again(experiments: Mapping[str, PaperExperiment], tables: Mapping[str, ResultsTable]) -> str:
    papers = dict.fromkeys(name.partition("/")[0] for name in experiments)
    machines = dict.fromkeys(
        f"hopscope {' / '.join(table.versions)}: {machine}"
        for table in tables.values()
        for machine in table.machines
    )
    measured = "".join(f"<li>{escape(line)}</li>" for line in machines)
    return section_html(
        "Reproduce these results",
        "From a checkout, with Python 3.11 or later. With `--protocol full` the runs are of the "
        "papers’ own size; without, what two cores can do. Runs whose rows are there are not "
        "trained again; claims and page need no training at all.",
        [
            _commands(
                [
                    "pip install -e .",
                    *(f"{COMMAND} {paper}" for paper in papers),
                    "hopscope papers claims",
                    "hopscope papers report",
                ]
            ),
            f"<p>This page was written by hopscope {__version__}"
            + (f" from what was measured by</p><ul>{measured}</ul>" if measured else ".</p>"),
        ],
        anchor="again",
    )


def _reproduce(experiment: PaperExperiment, table: ResultsTable | None) -> str:
    """Return the command that measures the rows of a table, or the first rows."""
    protocol = f" --protocol {table.protocol}" if table else ""
    return f"{COMMAND} {experiment.name}{protocol}"


def _commands(lines: Iterable[str]) -> str:
    """Return lines for a terminal; narrow screens break them only between flags."""
    text = re.sub(r"--\S+ \S+", r'<span class="flag">\g<0></span>', escape("\n".join(lines)))
    return f"<pre><code>{text}</code></pre>"


def _anchor(name: str) -> str:
    """Return a name as an HTML id: `musat/fig4` is musat-fig4."""
    return escape(name.replace("/", "-"), quote=True)
