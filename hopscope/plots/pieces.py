"""Runs, stores, comparisons and claims as text, for terminals and notebooks.

This module needs no drawing library.
"""

from typing import TYPE_CHECKING, Any

from hopscope.configs.kinds import KINDS, fetched
from hopscope.configs.training import FINAL_STEPS
from hopscope.plots.names import run_title
from hopscope.plots.piece import Piece
from hopscope.plots.symbols import setting_text, when_text
from hopscope.runs import opened
from hopscope.store import RunFolder, SqlQuery, Store
from hopscope.store.listing import state_of
from hopscope.store.query import Answer

if TYPE_CHECKING:
    from hopscope.papers.claim import Claim
    from hopscope.papers.judge import Finding
    from hopscope.study.circuits import Circuits
    from hopscope.study.comparison import Comparison, Ended
    from hopscope.study.run import RunStudy


def comparison(found: "Comparison") -> list[Piece]:
    """Return the settings that differ, the losses, and a comparison of the circuits."""
    names = found.names
    settings = [
        (field, setting_text(first), setting_text(second))
        for field, (first, second) in found.settings.items()
    ]
    losses = [
        (hop, which, *(_ended(ended, which) for ended in both))
        for hop, both in found.losses.items()
        for which in ("training", "validation", "learned at")
        if any(_ended(ended, which) for ended in both)
    ]
    several = any(course.train.shape[1] > 1 for course in found.courses)
    means = (
        f"Losses are means over the last {FINAL_STEPS} {found.courses[0].unit}s (of all, if there "
        f"are fewer){' and over the models of a run' if several else ''}."
    )
    pieces = [
        Piece(
            "", ("setting", *names), settings, () if settings else ("the settings are the same",)
        ),
        Piece("", ("loss", "", *names), losses, (means,) if losses else ("neither has losses",)),
    ]
    if found.circuits is not None:
        pieces += circuits(found.circuits, names)
    return [*pieces, Piece(lines=found.remarks)]


def circuits(both: "Circuits", names: tuple[str, str] = ("the first", "the second")) -> list[Piece]:
    """Return the steps and components of two circuits."""
    steps = [
        (str(step), *(" ".join(f"{a}.{b}" for a, b in its) or "-" for its in
                      (step.first, step.second)))
        for step in both.steps
    ]  # fmt: skip
    columns = ("component of", "heads and what they do")
    return [
        Piece("", ("step of the circuit", *names), steps),
        Piece("each component", columns, both.components(names), (both.in_common(*names),)),
    ]


def _ended(ended: "Ended | None", which: str) -> str:
    """Return a cell of the table of losses."""
    if ended is None:
        return ""
    if which == "learned at":
        return when_text(ended.learned) if ended.learned else ""
    value = ended.train if which == "training" else ended.validation
    return "" if value is None else f"{value:.4f}"


def run(shown: Any) -> list[Piece]:
    """Return the name, state and settings of a run, with its figure if it can be drawn."""
    folder, recipe, manifest = shown.folder, shown.folder.recipe, shown.folder.manifest
    facts = recipe.kind == "facts"  # losses can be drawn early; other kinds only when complete
    draw = KINDS[recipe.kind].figure
    drawn = bool(draw) and (manifest.complete or (facts and folder.begun))
    if facts and not folder.files("metrics/"):
        drawn = False  # a planted model, which was not trained
    of = "" if manifest.complete else f" of {recipe.steps:,}"
    state = f"{state_of(folder)}, {recipe.unit} {manifest.step:,}{of}"
    settings = [(field, str(value)) for field, value in recipe.named().items()]
    return [
        Piece(
            lines=(f"{run_title(folder)} `{folder.name}`: {state}",),
            figure=(lambda: fetched(draw)(shown)) if drawn else None,
        ),
        Piece("settings", ("setting", "value"), settings),
    ]


def folder(shown: RunFolder) -> list[Piece]:
    """Return the pieces of the run in a folder."""
    return run(opened(shown))


def study(shown: "RunStudy") -> list[Piece]:
    """Return the pieces of a model's run, and whether it has a circuit."""
    kept = "with its circuit" if shown.has_circuit else "without a circuit yet"
    text = f"the model of seed {shown.seed} after step {shown.step:,}, {kept}"
    return [*run(shown.run), Piece(lines=(text,))]


def store(shown: Store) -> list[Piece]:
    """Return a table with a row for each run, newest first."""
    found, problems = shown.listed()
    rows = [
        (each.name, each.status, f"{each.date:%Y-%m-%d %H:%M}" if each.date else "",
         " ".join(each.tags))
        for each in reversed(found)
    ]  # fmt: skip
    return [Piece("", ("run", "state", "date", "tags"), rows, problems)]


def answer(shown: Answer) -> list[Piece]:
    """The rows of an answer in SQL."""
    rows = [[_number(value) for value in row] for row in shown.rows]
    return [Piece("", shown.columns, rows, shown.problems)]


def _number(value: object) -> str:
    """Return a value as text; floats have seven digits, as many as stored losses."""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def sql_query(shown: SqlQuery) -> list[Piece]:
    """Run an SQL query and return its answer."""
    return answer(shown.answer())


def claim(shown: "Claim") -> list[Piece]:
    """Return a paper's claim, and how it is measured."""
    names = ("says", "where", "paper", "how")
    rows = [(name, getattr(shown, name)) for name in names]
    return [Piece("", ("claim", shown.id), rows)]


def finding(shown: "Finding") -> list[Piece]:
    """Return the verdict on a claim, with our value and the evidence."""
    return [Piece("", ("verdict", shown.verdict),
                  (("ours", shown.ours), ("evidence", shown.evidence)))]  # fmt: skip
