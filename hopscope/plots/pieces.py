"""What a result says beside its figure: lines of text, and tables. The terminal prints them, and
notebooks show them. No drawing library is needed for what the terminal shows.
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
    """The verdict, the components, how faithful they are, what is known beside, and what moves."""
    return [
        Piece(lines=(found.verdict, found.loss_line)),
        Piece("each component", COMPONENT_COLUMNS, component_rows(found)),
        Piece("recovered and agreement", SCORE_COLUMNS, score_rows(found)),
        Piece("remarks", lines=remarks(found)),
        account(found),
    ]


def account(found: Circuit) -> Piece:
    """What moves in the circuit, arrow by arrow."""
    return Piece(
        "what each path moves", ACCOUNT_COLUMNS, account_rows(found), account_remarks(found)
    )


def ablations(found: "Ablations") -> list[Piece]:
    """The losses with each change, and with none."""
    return [Piece("losses with heads changed", *ablation_rows(found.records()))]


def emergence(story: "Emergence") -> list[Piece]:
    """When each path passed one half, first to last; below, when each hop was learned."""
    return [Piece("each path and hop", EMERGENCE_COLUMNS, emergence_table(story))]


def probe(found: "Probe") -> list[Piece]:
    """The symbols that can be read, and those that each head adds."""
    from hopscope.plots.probe import added_rows, probe_remarks, probe_rows

    return [
        Piece("by layer and role", *probe_rows(found)),
        Piece("symbols that each head adds", ("head", "adds to", "symbols"), added_rows(found)),
        Piece(lines=probe_remarks(found)),
    ]


def probe_history(history: "ProbeHistory") -> list[Piece]:
    """When each symbol became decodable at each role."""
    from hopscope.plots.probe import history_rows

    columns = ("role", "symbol", "decodable from step")
    return [Piece("when each symbol became decodable", columns, history_rows(history))]


def baselines(found: "Baselines") -> list[Piece]:
    """What each method finds, and what that is worth."""
    from hopscope.plots.baselines import baselines_rows

    return [Piece("", *baselines_rows(found))]


def lm_findings(found: "LmFindings") -> list[Piece]:
    """What was found in a language model, phase by phase, but for the circuit."""
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
    """Settings that differ, losses side by side, and what the circuits have in common."""
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
    """A cell of the table of losses."""
    if ended is None:
        return ""
    if which == "learned at":
        return when_text(ended.learned) if ended.learned else ""
    value = ended.train if which == "training" else ended.validation
    return "" if value is None else f"{value:.4f}"


def run(shown: Any) -> list[Piece]:
    """A run of any kind: its name, its state, and its figure if something is known of it."""
    folder, recipe, manifest = shown.folder, shown.folder.recipe, shown.folder.manifest
    facts = recipe.kind == "facts"  # losses are drawn as far as they go, all else when it is whole
    draw = KINDS[recipe.kind].figure
    drawn = bool(draw) and (manifest.complete or (facts and folder.begun))
    if facts and not folder.files("metrics/"):
        drawn = False  # it was written by hand, and not trained
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
    """The run in a folder."""
    return run(opened(shown))


def study(shown: "RunStudy") -> list[Piece]:
    """The run of a model, and what is kept with it."""
    kept = "with its circuit" if shown.has_circuit else "without a circuit yet"
    text = f"the model of seed {shown.seed} after step {shown.step:,}, {kept}"
    return [*run(shown.run), Piece(lines=(text,))]


def store(shown: Store) -> list[Piece]:
    """A row for each run, newest first."""
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
    """A value of an answer; of a number no more digits than a loss is stored with."""
    return f"{value:.7g}" if isinstance(value, float) else str(value)


def sql_query(shown: SqlQuery) -> list[Piece]:
    """The answer to a question in SQL."""
    return answer(shown.answer())


def claim(shown: "Claim") -> list[Piece]:
    """What a paper says, and how we measure it."""
    names = ("says", "where", "paper", "how")
    rows = [(name, getattr(shown, name)) for name in names]
    return [Piece("", ("claim", shown.id), rows)]


def finding(shown: "Finding") -> list[Piece]:
    """What came of a claim."""
    return [Piece("", ("verdict", shown.verdict),
                  (("ours", shown.ours), ("evidence", shown.evidence)))]  # fmt: skip
