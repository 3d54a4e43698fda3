"""`hopscope claims` and `hopscope report`: both papers held against what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hopscope import __version__
from hopscope.cli.arguments import JsonArguments
from hopscope.cli.output import say, say_json, warn, width
from hopscope.errors import ConfigError, ResultsError
from hopscope.names import hint
from hopscope.papers.claim import Claim, Finding
from hopscope.papers.registry import PAPERS, Registry
from hopscope.papers.results_folder import Results, that_came_with_it
from hopscope.store.files import check_files

if TYPE_CHECKING:
    from hopscope.report.paper import Draw

OWN = Path("results")
COLOURS: Mapping[str, str] = {
    "reproduced": "32",
    "not reproduced": "31",
    "under a reading": "33",
    "not measured": "2",
}
"""The order of verdicts; green, red, yellow and dim, in the codes of a terminal."""

LISTS = ("ours", "evidence", "basis")
"""What is said of a claim piece by piece, each in a line of its own; the rest is prose."""


@dataclass(frozen=True, kw_only=True)
class MeasuredArguments:
    """What was measured."""

    results: Path | None = None
    """Folder of what `hopscope reproduce` measured; unset: ./results if there is anything in it,
    else what came with hopscope."""


@dataclass(frozen=True)
class ClaimsArguments(MeasuredArguments, JsonArguments):
    """The claims of both papers with our verdicts; of one, the values and all the evidence."""

    pattern: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="CLAIM")] = ""
    """A claim, of which everything is shown; or how ids begin, e.g. musat or abc; unset: all."""


@dataclass(frozen=True)
class ReportArguments(MeasuredArguments):
    """Write the claims, their verdicts and every figure as one self-contained page."""

    out: Path = Path("reports/papers.html")
    """The page."""


def claims(chosen: ClaimsArguments, papers: Registry = PAPERS) -> int:
    results = measured(chosen.results, papers)
    judged = [(one, one.finding(results)) for one in _matching(chosen.pattern, papers.claims)]
    if chosen.json:
        say_json([_fields(claim, finding) for claim, finding in judged])
    elif len(judged) == 1 and chosen.pattern:
        _print_whole(*judged[0])
    else:
        _print_table(judged)
    return _complain([claim for claim, _ in judged], results)


def _complain(judged: Sequence[Claim], results: Results) -> int:
    """A line for every file of results that cannot be read, and the exit code that this means."""
    code = 0
    of_all = {target for claim in judged for target in claim.sources}
    for target in sorted(of_all & results.targets.keys()):
        try:
            results.so_far(target)
        except ResultsError as error:
            warn(error)
            code = error.exit_code
    return code


def report(chosen: ReportArguments, papers: Registry = PAPERS, draw: "Draw | None" = None) -> int:
    from hopscope.report.page import save_page
    from hopscope.report.paper import paper_page
    from hopscope.report.table_figures import figures

    check_files(chosen.out)
    results = measured(chosen.results, papers)
    text = paper_page(papers.claims, papers.targets, results, draw or figures)
    say(f"page: {save_page(text, chosen.out)}")
    return 0


def measured(asked: Path | None, papers: Registry) -> Results:
    """What was measured here; else what came with hopscope, and then it is said so."""
    here = papers.results(asked or OWN)
    if asked is None and not here.any() and (kept := that_came_with_it()) is not None:
        warn(f"these results came with version {__version__}; --results names a folder of yours")
        return papers.results(kept)
    if not here.root.is_dir():  # a name that is not there may be a typing error
        warn(
            f"no folder {here.root}, so nothing is measured: what comes with the repository "
            "is in its results/; --results names another folder"
        )
    return here


def _matching(pattern: str, known: Mapping[str, Claim]) -> list[Claim]:
    exact = [claim for id_, claim in known.items() if pattern in (id_, id_.partition("/")[2])]
    found = exact or [
        claim
        for id_, claim in known.items()
        if id_.startswith(pattern) or id_.partition("/")[2].startswith(pattern)
    ]
    if not found:
        raise ConfigError(
            f"no claim {pattern!r}: {hint(pattern, known, '`hopscope claims` lists all')}"
        )
    return found


def _fields(claim: Claim, finding: Finding) -> dict[str, Any]:
    said = {name: getattr(claim, name) for name in ("id", "says", "where", "paper", "how")}
    said["targets"] = claim.sources
    why = claim.why(finding)
    return said | asdict(finding) | {"why": asdict(why) if why else None}


def _print_table(judged: Sequence[tuple[Claim, Finding]]) -> None:
    """A line or two for each claim, verdict by verdict."""
    from hopscope.cli.tables import table

    for verdict, colour in COLOURS.items():
        rows = [(claim.id, claim.says) for claim, finding in judged if finding.verdict == verdict]
        if rows:
            head = f"{verdict}: {len(rows)}"
            table((head, ""), rows, colours={head: colour})
            say()
    say("`hopscope claims NAME`: the paper's value, ours, and the evidence")


def _print_whole(claim: Claim, finding: Finding) -> None:
    """Everything about one claim, each part in a paragraph of its own."""
    from hopscope.report.layout import clauses, continued, hanging, wrapped

    why = claim.why(finding)
    parts = {
        "verdict": finding.verdict,
        "where": claim.where,
        "paper": claim.paper,
        "ours": finding.ours,
        "evidence": finding.evidence,
        "why": why.says if why else "",
        "basis": finding.basis,
        "how": claim.how,
        "targets": ", ".join(claim.sources),
    }
    margin = max(map(len, parts)) + 2
    say(claim.id, *wrapped(claim.says, width()), "")
    for name, text in parts.items():
        pieces = clauses(text) if name in LISTS else [text]
        lines = [line for one in pieces for line in hanging(one, width() - margin)]
        for number, line in enumerate(lines if text else ()):
            say(f"{'' if number else name:<{margin}}{line}")
    if why:
        say("", "what shows why:", *continued(why.command, width()))
