"""`hopscope readings`: which claims hold under which reading of what the paper leaves open."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from hopscope.cli.arguments import JsonArguments
from hopscope.cli.claims import MeasuredArguments, measured
from hopscope.cli.output import say, say_json
from hopscope.errors import ConfigError
from hopscope.papers.registry import PAPERS, Registry

if TYPE_CHECKING:
    from hopscope.papers.musat.reading_map import Tried


@dataclass(frozen=True)
class ReadingsArguments(MeasuredArguments, JsonArguments):
    """Readings of transformers A, B and C: what each ends at, and which claims hold under it."""

    words: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="WORD")] = ()
    """What a reading has, e.g. fan-in pair; unset: all readings. Of a single one, every claim."""


def readings(chosen: ReadingsArguments, papers: Registry = PAPERS) -> int:
    from hopscope.papers.musat.circuit_claims import CLAIMS
    from hopscope.papers.musat.reading_map import tried
    from hopscope.papers.musat.readings import READINGS
    from hopscope.papers.musat.readings import chosen as meant

    wanted = meant(" ".join(chosen.words).split())  # a reading's name may come as one word
    names = [each.name for each in READINGS if wanted.items() <= each.words.items()]
    if not names:
        raise ConfigError(
            f"no reading that is tried has {' and '.join(chosen.words)}: `hopscope readings` "
            "lists them"
        )
    results = measured(chosen.results, papers)
    targets = CLAIMS[0].sources
    every = [table for target in targets for table in results.so_far(target)]
    found = tried([table for table in every if not table.tiny])
    rows = [_row(one) for name in names for one in found if one.reading == name]
    rows += [_untried(name) for name in names if name not in {row["reading"] for row in rows}]
    if chosen.json:
        say_json(rows)
    else:
        _print(rows, whole=len(names) == 1)
        if len(names) > 1:
            _print_luck([one for one in found if one.reading in names])
    return 0


def _row(one: "Tried") -> dict[str, Any]:
    from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT

    return {
        "reading": one.reading,
        "steps": one.steps,
        "losses": [row.loss for row in one.rows],
        "learned": {row.seed: row.crossed for row in one.rows},
        "heads": one.heads,
        "held": {claim.id: one.held(claim.judge) for claim in AS_WE_TAKE_IT},
        "flop": one.flop,
    }


def _untried(name: str) -> dict[str, Any]:
    return {"reading": name, "steps": None, "losses": [], "learned": {}, "heads": [], "held": {},
            "flop": None}  # fmt: skip


def _loss(loss: float) -> str:
    """Three digits, or the first that is none of zero.

    >>> _loss(0.0123), _loss(0.00041)
    ('0.012', '0.0004')
    """
    return f"{loss:.3f}" if loss >= 0.001 else f"{loss:.1g}"


def _print(rows: list[dict[str, Any]], whole: bool) -> None:
    """A line for each reading; of a single one also a line for each claim, and for each model."""
    from hopscope.cli.tables import table
    from hopscope.papers.cost import in_flop

    shown = [
        (
            row["reading"],
            "" if row["steps"] is None else f"{row['steps']:,}",
            " ".join(map(_loss, row["losses"])) or "not yet",
            " ".join(f"{paths}+{others}" for paths, others in row["heads"]),
            _all(row),
            "" if row["flop"] is None else in_flop(row["flop"]),
        )
        for row in rows
    ]
    table(("reading", "steps", "losses at the end", "heads", "claims", "each"), shown)
    for row in rows:
        if whole and row["losses"]:
            say("")
            of = len(row["losses"])
            claims = [(name, f"{held} of {of}") for name, held in row["held"].items()]
            table(("claim", f"holds, {row['steps']:,} steps"), claims)
            say("")
            _print_steps(row["learned"])
    say(
        "",
        "heads: those of the circuit with a path, and those without",
        "claims: how many of them hold for all models",
        "`hopscope reproduce musat/readings` trains what is missing",
    )


def _print_luck(found: "list[Tried]") -> None:
    """A line for each claim: whether it goes with the reading, or with the seed."""
    from hopscope.cli.tables import table
    from hopscope.papers.claim import share
    from hopscope.papers.luck import luck
    from hopscope.papers.musat.circuit_claims import AS_WE_TAKE_IT
    from hopscope.papers.musat.reading_map import asked_of_one, comparable, usual_steps

    steps = usual_steps(found)
    alike = comparable(found, steps)
    if len(alike) < 2:
        return
    rows = []
    for claim in AS_WE_TAKE_IT:
        known = [each.outcome(claim.judge) for each in alike]
        every = [[holds for _, holds in outcome] for outcome in known]
        held, models = sum(map(sum, every)), sum(map(len, every))
        whole = sum(map(all, every))
        odds = f"{luck(known):.2g}" if asked_of_one(found, claim.judge) else "–"
        rows.append((claim.id, share(held, models), share(whole, len(known)), odds))
    say("")
    table(("claim", "models", "readings", "by luck"), rows)
    say(
        "",
        f"models, readings: for how many it holds after {steps:,} steps (a reading: for",
        "all its models); facts shuffled are no reading of the paper",
        "by luck: how likely models of one reading would agree as well, if readings made",
        "no difference",
    )


def _print_steps(learned: dict[int, tuple[int | None, ...]]) -> None:
    """When each model learned each hop."""
    from hopscope.cli.tables import table
    from hopscope.facts import symbol_name

    hops = max(map(len, learned.values()))
    named = [f"{symbol_name(f'x{hop + 1}')} learned at step" for hop in range(hops)]
    rows = [
        (f"{seed}", *("never" if step is None else f"{step:,}" for step in steps))
        for seed, steps in learned.items()
    ]
    table(("seed", *named), rows)


def _all(row: dict[str, Any]) -> str:
    """How many claims hold for every model of a reading."""
    held = row["held"].values()
    return f"{sum(count == len(row['losses']) for count in held)} of {len(held)}" if held else ""
