"""How what Musat (ICLR 2025) says of transformer D is judged.

The paper leaves open how many training examples and which initial weights it had, and a claim may
hold under some readings only; then its finding names the first.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from hopscope.facts import parse_role
from hopscope.papers.claim import Finding, Judge
from hopscope.papers.musat_circuit_judges import REMOVALS
from hopscope.papers.musat_judges import mean, verdict
from hopscope.papers.results import Row, Table

LOSS = 0.031
"""The paper's loss of transformer D (§9.2);"""
CIRCUIT_LOSS = 0.045
"""with its circuit alone."""
EPOCH = 8
"""Steps of an epoch, as the paper counts: 6,400 steps are 800 epochs (§9.1)."""
START = 450
"""The epoch at which its first head emerges (§9.2)."""


def by_reading(holds: Callable[[Row], bool], say: Callable[[Row], str], evidence: str) -> Judge:
    """Does it hold for every model of all readings, of some, or of none?"""

    def judge(tables: Sequence[Table]) -> Finding:
        readings: dict[str, list[Row]] = {}
        for row in tables[0].rows:
            readings.setdefault(_reading(row), []).append(row)
        said = "; ".join(
            f"{', '.join(map(say, rows))} with {name}" for name, rows in readings.items()
        )
        kept = [name for name, rows in readings.items() if all(map(holds, rows))]
        if 0 < len(kept) < len(readings):
            return Finding(said, "under a reading", f"{evidence}; with {kept[0]}")
        return Finding(said, verdict(bool(kept)), f"{evidence}; every reading")

    return judge


def _reading(row: Row) -> str:
    weights = "" if row["init"] == "gpt2" else " and initial weights of 1/√inputs"
    return f"{row['examples']:,} examples{weights}"


loss = by_reading(
    lambda row: mean(row) <= 2 * LOSS,
    lambda row: f"{mean(row):.3f}",
    "mean over the last 100 steps, at most twice the paper's value",
)
circuit_loss = by_reading(
    lambda row: row["ideal"] <= 2 * CIRCUIT_LOSS,
    lambda row: f"{row['ideal']:.3f} (from {row['clean']:.3f})",
    "every head's attention replaced by the mechanism found; at most twice the paper's value",
)


def _start(row: Row) -> str:
    step = row["crossed"][0]
    return "never" if step is None else f"step {step:,} (epoch {step / EPOCH:.0f})"


slow_start = by_reading(
    lambda row: START / 2 <= (row["crossed"][0] or 0) / EPOCH <= 1.5 * START,
    _start,
    "the step at which x_1 passes 0.5; between half of 450 epochs and half as many again, of 8 "
    "steps each, as the paper counts them",
)


def _steps(row: Row) -> str:
    return " < ".join("never" if step is None else f"{step:,}" for step in row["crossed"])


def _all_in_order(row: Row) -> bool:
    crossed = row["crossed"]
    return None not in crossed and all(a <= b for a, b in pairwise(crossed))


hops_in_order = by_reading(
    _all_in_order, _steps, "steps at which x_1, x_2, … pass 0.5; all do, one after the other"
)


def first_paths(row: Row) -> Mapping[int, float]:
    """When attention first passed one half along a path that touches a fact and no later one."""
    found: dict[int, float] = {}
    for path in row.get("emergence", {"paths": []})["paths"]:
        step = path["emerged_at_step"]
        if step is not None:
            roles = [parse_role(path[end]) for end in ("reader", "source")]
            fact = max(role.fact for role in roles if role.kind != "query")
            found[fact] = min(step, found.get(fact, step))
    return dict(sorted(found.items()))


def _paths(row: Row) -> str:
    return " < ".join(f"{step:,.0f}" for step in first_paths(row).values()) or "no path"


heads_in_order = by_reading(
    lambda row: (
        len(first_paths(row)) == row["hops"]
        and all(a <= b for a, b in pairwise(first_paths(row).values()))
    ),
    _paths,
    "steps at which attention first passes 0.5 along a path that reaches x_1, x_2, … and not "
    "farther; there is one for every hop",
)


def _gaps(row: Row) -> list[int]:
    crossed = row["crossed"]
    return [] if None in crossed else [b - a for a, b in pairwise(crossed)]


last_late = by_reading(
    lambda row: len(_gaps(row)) > 1 and _gaps(row)[-1] > _gaps(row)[-2],
    lambda row: ", ".join(f"{gap:,}" for gap in _gaps(row)) or "not all hops learned",
    "steps from each hop's passing 0.5 to the next one's; the last gap is longer than the one "
    "before",
)


def _removals(row: Row) -> list[float]:
    return [removal["ideal"] for removal in row["removals"] if not removal["joins_pair"]]


def _within(row: Row) -> list[float]:
    return [loss for loss in _removals(row) if REMOVALS[0] <= loss <= REMOVALS[1]]


removals = by_reading(
    lambda row: row["ideal"] < REMOVALS[0] and [] != _removals(row) == _within(row),
    lambda row: f"{len(_within(row))} of {len(_removals(row))} paths (circuit {row['ideal']:.3f})",
    "each path removed alone from the circuit, all others ideal: paths of which that costs 0.17 to "
    "0.89; the circuit itself is below",
)
