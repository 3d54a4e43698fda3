"""`hopscope emergence`, and analyses of every seed of a run."""

from collections.abc import Sequence
from math import inf
from statistics import median_high, median_low
from typing import Any

from hopscope import study as studies
from hopscope.circuits.emergence import Emergence
from hopscope.cli.asked import Asked, analysis, progress
from hopscope.cli.options import option, refuse_unused
from hopscope.cli.results import Output, near
from hopscope.cli.tables import Part
from hopscope.display import data_frame
from hopscope.errors import NotLearned
from hopscope.plots.piece import Piece, of_plots
from hopscope.plots.symbols import short_role


@analysis(
    32,
    option("--all", "All seeds of the run's recipe, a line for each (after `circuit --all`).",
           name="every"),
    beside=("order", "circuit"), only_runs=True,
)  # fmt: skip
def emergence(asked: Asked, every: bool) -> Output:
    """Show when the paths of the circuit appeared during training.

    For checkpoints from elsewhere use hopscope.Study.series in Python.

    --figure FILE draws two more figures: FILE-order, the order of the paths, and FILE-circuit, the
    circuit with its paths coloured by time. With --all, FILE-seed-N is drawn for each seed.
    """
    if every:
        return _emergence_of_all(asked)
    study = asked.subject.run_study("emergence")
    story = study.emergence(asked.examples, asked.sample)
    return Output.of(story, beside=_beside(study, story))


def _beside(study: "studies.Study", story: Emergence) -> dict[str, Any]:
    """Return the two other figures of an emergence, by the suffix of their files."""
    return {
        "order": lambda: of_plots("emergence:order_figure")(story),
        "circuit": lambda: of_plots("circuit:circuit_figure")(study.circuit, story),
    }


def _emergence_of_all(asked: Asked) -> Output:
    """Return the emergence in every seed, and name the seeds whose circuit has no paths."""
    refuse_unused("with --all", "--seed", "--circuit-file")
    members = asked.subject.run_study("--all").members()
    found = [study for study in members if study.has_circuit]
    stories = [
        (study, study.emergence(asked.examples, asked.sample))
        for study in found or members[:1]  # without circuits, the first member raises what to do
        if study.circuit.paths
    ]
    if path := asked.to.figure:
        for study, story in stories:
            own = near(path, f"seed-{study.seed}")
            asked.to.draw(own, story.picture, _beside(study, story))
    data = [{"seed": study.seed, **story.to_dict()} for study, story in stories]
    events = {study: _events(story) for study, story in stories}
    without = [study for study in members if study not in events]
    for study in without:  # of these, too, it is known when they learned each hop
        if study.run.folder.manifest.complete:
            learned = study.run.learned()[study.member or 0]
            events[study] = _hops(study.task.asked_hops(), learned)
    rows = [(study.seed, events[study]) for study in members if study in events]
    parts: list[Part] = [seeds_piece(rows)]
    if without:
        seeds = ", ".join(str(study.seed) for study in without)
        parts.append(f"without a circuit that has paths: seed {seeds}")

    def frame() -> Any:
        return data_frame(
            {"seed": study.seed, **row}
            for study, story in stories
            for row in story.frame().to_dict("records")
        )

    return Output(data, parts, frame=frame)  # the figures were drawn above


def _events(story: Emergence) -> dict[str, float]:
    """Return the step at which each path emerged and each hop was learned (infinity: never).

    If several heads have the same path, the earliest counts.
    """
    found: dict[str, float] = {}
    for path, step in reversed(story.order):
        name = f"{short_role(path.source)}→{short_role(path.destination)}"
        found[name] = inf if step is None else step
    return dict(sorted(found.items())) | _hops(story.asked, story.learned_at or ())


def _hops(asked: Sequence[int], learned: Sequence[int | None]) -> dict[str, float]:
    """Return the step at which each hop was learned (infinity: never)."""
    found = zip(asked, learned, strict=False)
    return {f"hop {hop}": inf if step is None else step for hop, step in found}


def seeds_piece(rows: Sequence[tuple[int, dict[str, float]]]) -> Piece:
    """Return a table with a line for each seed, then the median and the range over seeds."""
    names = [*dict.fromkeys(name for _, events in rows for name in events)]
    names.sort(key=lambda name: name.startswith("hop"))

    def cell(events: dict[str, float], name: str) -> str:
        return _step(events[name]) if name in events else "–"

    lines = [(f"{seed}", *(cell(events, name) for name in names)) for seed, events in rows]
    # A path that never emerged counts as later than all others (infinity).
    steps = [[events[name] for _, events in rows if name in events] for name in names]
    lines.append(("median", *map(_median, steps)))
    spans = [f"{_step(min(each))} … {_step(max(each))}" for each in steps]
    lines.append(("range", *spans))
    remark = (
        "of a path the step at which attention passed 0.5, by whichever head first, of a hop when "
        "it was learned; –: the circuit of this seed has no such path; never: after all others in "
        "the median and the range"
    )
    return Piece("", ("seed", *names), lines, (remark,))


def _median(steps: Sequence[float]) -> str:
    """Return the median as text: "> STEP" if it lies between a step and never."""
    low, high = median_low(steps), median_high(steps)
    return f"> {_step(low)}" if low < high == inf else _step((low + high) / 2)


def _step(at: float) -> str:
    return "never" if at == inf else f"{at:,.0f}"


def circuits_of_all(asked: Asked, search: dict[str, Any], *, again: bool) -> Output:
    """Find and keep the circuit of every seed; a line for each. `search` has the options of
    `hopscope.discover`.
    """
    rows, watch = [], progress()
    for study in asked.subject.run_study("--all").members():
        watch(f"seed {study.seed}")
        row: dict[str, Any] = dict.fromkeys(COLUMNS) | {"seed": study.seed}
        try:
            kept = study.has_circuit and not again
            found = study.circuit if kept else study.discover(**search)
        except NotLearned as error:
            rows.append(row | {"paths": str(error)})
            continue
        losses = found.losses
        rows.append(
            row
            | {
                "loss": losses.mean("model"),
                "circuit": losses.mean("prescribed"),
                "recovered": found.recovered(),
                "computed": found.recovered("computed"),
                "paths": ", ".join(map(_short, found.paths)),
                "not_named": ", ".join(each.name for each in found.unnamed),
            }
        )
    shares = {"loss": ".4f", "circuit": ".4f", "recovered": ".1%", "computed": ".1%"}
    return Output.table(rows, shares)


COLUMNS = ("seed", "loss", "circuit", "recovered", "computed", "paths", "not_named")


def _short(path: Any) -> str:
    return f"{path.layer}.{path.head} {short_role(path.source)}→{short_role(path.destination)}"
