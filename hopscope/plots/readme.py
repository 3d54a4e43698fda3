"""results/README.md: the verdicts, and the origin of the measurements."""

from collections.abc import Sequence

from hopscope.papers.judge import Finding
from hopscope.papers.registry import Registry
from hopscope.papers.results import Results, ResultsTable

README_HEAD = """\
# Results

`hopscope papers run` writes this page from the rows beside it. `docs/papers.md` says how to measure
them again, and `hopscope papers run NAME --draw` draws their figures, of which the repository keeps
those that the documentation shows.

What each row of a file is:

* `chen/`, `musat/`: a run of an experiment, the evidence of the verdicts below.
* `lm/`: questions asked of language models, their heads and circuits, and the speed of the answers.
* `circuit_tools*`, `demo_paths`, `discovery*`, `mib`, `misleading`, `other_tasks`, `samples`,
  `strangers`, `thresholds`: a model whose circuit was searched, by hopscope or another tool.
* `accounts`: what an arrow of a circuit brings. `place_by_place`: where a head looks when facts are
  shuffled.
* `batches`, `places*`, `small_*`, `theory_against_training`, `figure_4_on_a_processor`: a training
  of a small model.
* `busy`, `fleet_and_dataset`, `kernels`, `many_runs`, `ngram_speed`, `train_step`: a speed.
  `precision`: models trained in float32 and in bf16.
* `chaos`, `kill_resume`: sweeps and a run that were killed and resumed.

`scripts/` has the programs whose measurements are not in `benchmarks/`.
"""
COLUMNS = ("claim", "says", "where", "paper", "ours", "verdict", "evidence")


def readme(papers: Registry, results: Results) -> str:
    """Return the page: every claim with its verdict (hopscope's claims apart), and all tables."""
    judged = papers.judged("", results)
    rows = {
        origin: [
            (claim.id, claim.says, claim.where, claim.paper, found.ours, found.verdict, told(found))
            for claim, found in judged
            if claim.origin == origin
        ]
        for origin in ("paper", "ours")
    }
    shown = [(name, results.shown(name)) for name in papers.experiments]
    measured = [
        (name, _protocol(table), len(table.rows), " / ".join(table.versions),
         " / ".join(table.machines))
        for name, table in shown
        if table is not None
    ]  # fmt: skip
    return "\n".join(
        [
            README_HEAD,
            "## What the papers claim\n",
            _table(COLUMNS, rows["paper"]),
            "\n## What hopscope papers claims\n",
            _table(COLUMNS, rows["ours"]),
            "\n## Rows\n",
            _table(("experiment", "protocol", "rows", "hopscope", "machine"), measured),
            "",
        ]
    )


def told(found: Finding) -> str:
    """Return the evidence of a finding in one line."""
    chance = [] if found.chance is None else [f"permutation test: p = {found.chance:.2g}"]
    return "; ".join(filter(None, (found.evidence, *chance, *found.notes, *found.cost)))


def _protocol(table: ResultsTable) -> str:
    """Return the protocol, the number of runs if some are missing, and the remark."""
    so_far = f"{table.progress} so far" if table.missing else ""
    return ": ".join(
        filter(None, (table.protocol, "; ".join(filter(None, (so_far, table.remark)))))
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [columns, ["---" for _ in columns], *rows]
    cells = (" | ".join(str(cell).replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {line} |" for line in cells)
