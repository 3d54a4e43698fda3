"""What a notebook shows of runs: one, a store of them, two side by side; and of papers' claims."""

from collections.abc import Sequence
from html import escape
from typing import Any

from hopscope.papers.claim import Claim, Finding
from hopscope.report.comparison import comparison_figure
from hopscope.report.kinds import FIGURES, figure_of
from hopscope.report.names import run_title
from hopscope.report.page import figure_html, list_html, more_html, prose, table_html
from hopscope.runs import opened
from hopscope.store import Question, RunFolder, Store
from hopscope.store.listing import state_of
from hopscope.store.query import Answer
from hopscope.study.comparison import Comparison
from hopscope.study.run import RunStudy

MOST = 20
"""Rows of a table that are shown; the rest is counted."""


def run(shown: Any) -> Sequence[str]:
    """A run of any kind: its name, its state, and its figure if something is known of it."""
    folder: RunFolder = shown.folder
    kind = folder.recipe.kind  # losses are drawn as far as they go, all else when it is whole
    drawn = kind in FIGURES and (folder.manifest.complete or (kind == "facts" and folder.begun))
    if kind == "facts" and not folder.files("metrics/"):
        drawn = False  # it was written by hand, and not trained
    return [
        _headline(folder),
        figure_html(figure_of(shown)) if drawn else "",
        more_html("settings", _settings(folder)),
    ]


def _headline(folder: RunFolder) -> str:
    title, name = escape(run_title(folder)), escape(folder.name)
    return f"<p><strong>{title}</strong> <code>{name}</code>: {_progress(folder)}</p>"


def folder(shown: RunFolder) -> Sequence[str]:
    return run(opened(shown))


def study(shown: RunStudy) -> Sequence[str]:
    """The run of a model, and what is kept with it."""
    kept = "its circuit is known" if shown.has_circuit else "its circuit is not known yet"
    told = f"<p>the model of seed {shown.seed} after step {shown.step:,}; {kept}</p>"
    return [*run(shown.run), told]


def store(shown: Store) -> Sequence[str]:
    """A row for each run, newest first."""
    found, problems = shown.listed()
    rows = [
        (
            each.name,
            each.status,
            "" if each.date is None else f"{each.date:%Y-%m-%d %H:%M}",
            " ".join(each.tags),
        )
        for each in reversed(found)
    ]
    return [_table(("run", "state", "date", "tags"), rows), list_html(problems)]


def answer(shown: Answer) -> Sequence[str]:
    rows = [[_told(value) for value in row] for row in shown.rows[: MOST + 1]]
    return [_table(shown.columns, rows, len(shown.rows)), list_html(shown.problems)]


def _told(value: object) -> str:
    """A value of an answer; of a number no more digits than a loss is stored with."""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def question(shown: Question) -> Sequence[str]:
    return answer(shown.answer())


def comparison(shown: Comparison) -> Sequence[str]:
    """Settings that differ, losses side by side, and what the circuits have in common."""
    settings = [(each.field, str(each.first), str(each.second)) for each in shown.settings]
    pieces = [table_html(("setting", *shown.names), settings)] if settings else []
    pieces += [figure_html(comparison_figure(shown))] if shown.hops else []
    if shown.circuits is not None:
        steps = [
            (str(step), *(" ".join(f"{a}.{b}" for a, b in heads) for heads in _heads(step)))
            for step in shown.circuits.steps
        ]
        pieces.append(table_html(("step of the circuit", *shown.names), steps))
        parts = shown.circuits.components(shown.names)
        pieces.append(
            more_html("each component", table_html(("component of", "what heads do"), parts))
        )
    return [*pieces, list_html(shown.without)]


def _heads(step: Any) -> tuple[Any, Any]:
    return step.first, step.second


def claim(shown: Claim) -> Sequence[str]:
    rows = (
        ("says", shown.says),
        ("where", shown.where),
        ("paper", shown.paper),
        ("how", shown.how),
    )
    return [_facts((("claim", shown.id), *rows))]


def finding(shown: Finding) -> Sequence[str]:
    rows = (("ours", shown.ours), ("verdict", shown.verdict), ("evidence", shown.evidence))
    return [_facts(rows)]


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    """What is known of one thing: a name and a value in each row."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{prose(said)}</td></tr>" for name, said in rows)
    return f"<table>{body}</table>"


def _settings(shown: RunFolder) -> str:
    named = shown.recipe.named().items()
    return _facts([(field, str(value)) for field, value in named])


def _progress(shown: RunFolder) -> str:
    unit, manifest = shown.recipe.unit, shown.manifest
    told = f"{state_of(shown)}, {unit} {manifest.step:,}"
    return told if manifest.complete else f"{told} of {shown.recipe.steps:,}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], count: int | None = None) -> str:
    left = (len(rows) if count is None else count) - MOST
    rest = f'<p class="dim">and {left:,} more</p>' if left > 0 else ""
    return table_html(columns, rows[:MOST]) + rest
