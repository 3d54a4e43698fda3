"""results/README.md: what was measured, in the words of the tables themselves."""

from collections.abc import Mapping, Sequence

from hopscope.papers.claim import Claim
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table
from hopscope.papers.target import Target

HEAD = """\
# Results

Written by `hopscope reproduce` from the tables beside it, and not by hand. How they came about, and
how to have them again: docs/papers.md. Other files come from `benchmarks/` and `scripts/`, as the
docs say.
"""


def readme(claims: Mapping[str, Claim], targets: Mapping[str, Target], results: Results) -> str:
    """Every claim with its verdict, and every table with what it comes from."""
    judged = [(claim, claim.finding(results)) for claim in claims.values()]
    said = [
        (
            claim.id,
            claim.says,
            claim.where,
            claim.paper,
            finding.ours,
            finding.verdict,
            "; ".join(filter(None, (finding.evidence, finding.basis))),
        )
        for claim, finding in judged
    ]
    tables = [table for name in targets for table in results.readable_so_far(name)[0]]
    measured = [
        (
            t.target,
            _protocol(t),
            len(t.rows),
            t.hopscope,
            t.machine,
        )
        for t in tables
    ]
    return "\n".join(
        [
            HEAD,
            "## Claims\n",
            _table(("claim", "says", "where", "paper", "ours", "verdict", "evidence"), said),
            "\n## Tables\n",
            _table(("target", "protocol", "rows", "hopscope", "machine"), measured),
            "",
        ]
    )


def _protocol(table: Table) -> str:
    """The protocol, what it left out, and whether runs are still missing."""
    so_far = f"{len(table.runs)} of {table.wanted} runs so far" if table.missing else ""
    return ": ".join(
        filter(None, (table.protocol, "; ".join(filter(None, (so_far, table.remark)))))
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---" for _ in columns], *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells)
