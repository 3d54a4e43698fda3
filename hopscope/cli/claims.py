"""`hopscope claims` and `hopscope report`: both papers held against what was measured."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import tyro

from hopscope.cli.arguments import parse
from hopscope.errors import ConfigError, ResultsUnreadable
from hopscope.papers.claim import Claim, Finding, Verdict
from hopscope.papers.results import Results

COLUMNS = ("claim", "where", "paper", "ours", "verdict", "evidence")
COLOURS: Mapping[Verdict, str] = {
    "reproduced": "green",
    "not reproduced": "red",
    "under a reading": "yellow",
    "not measured": "dim",
}


@dataclass(frozen=True)
class ClaimsArguments:
    """The claims of both papers: the paper's value, ours, and the verdict."""

    pattern: Annotated[str, tyro.conf.Positional] = ""
    """A claim, or how its id begins, e.g. musat; unset: all."""
    results: Path = Path("results")
    """Folder of what `hopscope reproduce` measured."""
    json: bool = False
    """Print one line of JSON for each claim instead of a table."""


@dataclass(frozen=True)
class ReportArguments:
    """Write the claims, their verdicts and every figure as one self-contained page."""

    results: Path = Path("results")
    """Folder of what `hopscope reproduce` measured."""
    to: Path = Path("reports/papers.html")
    """The page."""


def claims(arguments: Sequence[str]) -> int:
    from hopscope.papers.claim import claims as all_claims

    chosen = parse(ClaimsArguments, "claims", arguments)
    results = _results(chosen.results)
    judged = [(one, one.finding(results)) for one in _matching(chosen.pattern, all_claims())]
    if chosen.json:
        for claim, finding in judged:
            print(json.dumps(_fields(claim, finding), ensure_ascii=False))
    else:
        _print_table(judged)
    return _complain([claim for claim, _ in judged], results)


def _complain(judged: Sequence[Claim], results: Results) -> int:
    """A line for every file of results that cannot be read, and the exit code that this means."""
    code = 0
    for target in sorted({target for claim in judged for target in claim.targets}):
        try:
            if results.has(target):
                results.table(target)
        except ResultsUnreadable as error:
            print(f"hopscope: {error}", file=sys.stderr)
            code = error.exit_code
    return code


def report(arguments: Sequence[str]) -> int:
    from hopscope.papers.claim import claims as all_claims
    from hopscope.papers.target import targets
    from hopscope.report.page import save_page
    from hopscope.report.paper import paper_page
    from hopscope.report.results import figures

    chosen = parse(ReportArguments, "report", arguments)
    text = paper_page(all_claims(), targets(), _results(chosen.results), figures)
    print(f"page: {save_page(text, chosen.to)}")
    return 0


def _results(root: Path) -> Results:
    """The folder; that nothing is there is worth a word, as it may be a slip of the pen."""
    if not root.is_dir():
        print(
            f"hopscope: no folder {root}, so nothing is measured: what comes with the repository "
            "is in its results/; --results names another folder",
            file=sys.stderr,
        )
    return Results(root)


def _matching(pattern: str, known: Mapping[str, Claim]) -> list[Claim]:
    found = [claim for id_, claim in known.items() if id_.startswith(pattern)]
    if not found:
        near = get_close_matches(pattern, known, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "`hopscope claims` lists all"
        raise ConfigError(f"no claim {pattern!r}: {hint}")
    return found


def _fields(claim: Claim, finding: Finding) -> dict[str, Any]:
    said = {
        name: getattr(claim, name) for name in ("id", "says", "where", "paper", "how", "targets")
    }
    return said | asdict(finding)


def _print_table(judged: Sequence[tuple[Claim, Finding]]) -> None:
    from rich.markup import escape

    from hopscope.cli.tables import table
    from hopscope.report.paper import counts

    rows = []
    for claim, finding in judged:
        colour = COLOURS[finding.verdict]
        texts = [escape(text) for text in (claim.id, claim.where, claim.paper, finding.ours)]
        verdict = f"[{colour}]{finding.verdict}[/]"
        rows.append([*texts, verdict, escape(finding.evidence)])
    table(COLUMNS, rows)
    numbers = counts(finding for _, finding in judged).items()
    print(f"\n{', '.join(f'{number} {verdict}' for verdict, number in numbers if number)}")
