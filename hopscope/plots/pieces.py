"""The pieces of each class of results: lines of text and tables, for terminals and notebooks.

The terminal's pieces need no drawing library.
"""

from typing import TYPE_CHECKING, Any

from hopscope.circuits.circuit import Circuit
from hopscope.configs.kinds import KINDS, fetched
from hopscope.plots.account import ACCOUNT_COLUMNS, account_remarks, account_rows
from hopscope.plots.names import run_title
from hopscope.plots.piece import Piece
from hopscope.plots.symbols import setting_text, when_text
from hopscope.plots.words import (
    COMPONENT_COLUMNS,
    EMERGENCE_COLUMNS,
    SCORE_COLUMNS,
    ablation_rows,
    component_rows,
    emergence_table,
    remarks,
    score_rows,
)
from hopscope.runs import opened
from hopscope.store import RunFolder, SqlQuery, Store
from hopscope.store.listing import state_of
from hopscope.store.query import Answer

if TYPE_CHECKING:
    from hopscope.circuits.ablator import Ablations
    from hopscope.circuits.emergence import Emergence
    from hopscope.circuits.probe import Probe, ProbeHistory
    from hopscope.circuits.ranking import Baselines
    from hopscope.lm.findings import LmFindings
    from hopscope.papers.claim import Claim
    from hopscope.papers.judge import Finding
    from hopscope.study.comparison import Comparison, Ended
    from hopscope.study.run import RunStudy


def circuit(found: Circuit) -> list[Piece]:
    """Return the verdict, the components, the scores, remarks, and the account of a circuit."""
    return [
        Piece(lines=(found.verdict, found.loss_line)),
        Piece("each component", COMPONENT_COLUMNS, component_rows(found)),
        Piece("recovered and agreement", SCORE_COLUMNS, score_rows(found)),
        Piece("remarks", lines=remarks(found)),
        account(found),
    ]


def account(found: Circuit) -> Piece:
    """Return the table of what each arrow of the circuit moves."""
    return Piece(
        "what each path moves", ACCOUNT_COLUMNS, account_rows(found), account_remarks(found)
    )


def ablations(found: "Ablations") -> list[Piece]:
    """The losses with each change, and with none."""
    return [Piece("losses with heads changed", *ablation_rows(found.records()))]


def emergence(story: "Emergence") -> list[Piece]:
    """Return a table of when each path passed one half, then of when each hop was learned."""
    return [Piece("each path and hop", EMERGENCE_COLUMNS, emergence_table(story))]


def probe(found: "Probe") -> list[Piece]:
    """Return the decodable symbols, and those that each head adds."""
    from hopscope.plots.probe import added_rows, probe_remarks, probe_rows

    return [
        Piece("by layer and role", *probe_rows(found)),
        Piece("symbols that each head adds", ("head", "adds to", "symbols"), added_rows(found)),
        Piece(lines=probe_remarks(found)),
    ]


def probe_history(history: "ProbeHistory") -> list[Piece]:
    """Return a table of when each symbol became decodable at each role."""
    from hopscope.plots.probe import history_rows

    columns = ("role", "symbol", "decodable from step")
    return [Piece("when each symbol became decodable", columns, history_rows(history))]


def baselines(found: "Baselines") -> list[Piece]:
    """Return the table of methods with their precision, recall and faithfulness."""
    from hopscope.plots.baselines import baselines_rows

    return [Piece("", *baselines_rows(found))]


def lm_findings(found: "LmFindings") -> list[Piece]:
    """Return the findings of a language model, phase by phase, without the circuit."""
    from hopscope.plots.lm_circuit import confirmed_rows, lens_rows, proof_rows, role_rows

    where = {"proof": found.recipe.prompts, "elsewhere": found.recipe.elsewhere}
    proofs = [
        Piece(
            f"how far the answer follows, on {known[0].questions} questions of {prompts.label}",
            *proof_rows(known),
        )
        for phase, prompts in where.items()
        if prompts and (known := found.proofs(phase))
    ]
    fresh = found.confirmed[0].questions if found.confirmed else 0
    return [
        Piece(lines=found.verdict()),
        Piece("how far the answer follows, before each layer (█: all the way)", *role_rows(found)),
        Piece("the logit lens, where it sees a symbol by half or more", *lens_rows(found)),
        Piece(f"what roles hold, on {fresh} fresh questions", *confirmed_rows(found)),
        *proofs,
    ]


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
    pieces = [
        Piece(
            "", ("setting", *names), settings, () if settings else ("the settings are the same",)
        ),
        Piece("", ("loss", "", *names), losses, () if losses else ("neither has losses",)),
    ]
    if (both := found.circuits) is not None:
        steps = [
            (str(step), *(" ".join(f"{a}.{b}" for a, b in its) or "-" for its in
                          (step.first, step.second)))
            for step in both.steps
        ]  # fmt: skip
        said = (
            f"{sum(step.common for step in both.steps)} of {len(both.steps)} steps are in both "
            f"circuits; components: {len(both.common)} in both, {len(both.first)} in {names[0]} "
            f"alone, {len(both.second)} in {names[1]} alone"
        )
        columns = ("component of", "heads and what they do")
        pieces += [
            Piece("", ("step of the circuit", *names), steps),
            Piece("each component", columns, both.components(names), (said,)),
        ]
    return [*pieces, Piece(lines=found.without)]


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
