"""`hopscope discover --all` and `emergence --all`: every member of a fleet, side by side."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from hopscope.circuits import Circuit
from hopscope.circuits.emergence import Emergence
from hopscope.cli.output import say
from hopscope.cli.subject import Examined, ModelArguments
from hopscope.cli.tables import table
from hopscope.errors import NotLearned
from hopscope.report.depth import short_role
from hopscope.theory import Path

Telling = Callable[[Examined, Circuit], Emergence]


def members(chosen: ModelArguments) -> Iterator[tuple[int, Examined]]:
    """Every seed of the run, and its model."""
    for seed in Examined(chosen).run.experiment.seeds:
        yield seed, Examined(replace(chosen, seed=seed))


def discover_all(chosen: ModelArguments, watch: Callable[[str], None], **options: int) -> None:
    """Find and keep every member's circuit; a line for each."""
    rows = []
    for seed, examined in members(chosen):
        watch(f"seed {seed}")
        try:
            found = examined.found(lambda _: None, None, **options)
        except NotLearned as error:
            rows.append((seed, "", "", "", str(error)))
            continue
        losses = found.losses
        paths = ", ".join(_short(path.layer, path.head, *_ends(path)) for path in found.paths)
        means = (f"{losses.mean('clean'):.4f}", f"{losses.mean('ideal'):.4f}")
        rows.append((seed, *means, "yes" if found.solved else "no", paths))
    table(("seed", "loss", "with the circuit alone", "solved", "paths"), rows)


def emergence_all(chosen: ModelArguments, tell: Telling) -> None:
    """When every step (who reads whom) appeared in each member, and when hops were learned."""
    when: dict[str, dict[int, float | None]] = {}
    seeds = []
    for seed, examined in members(chosen):
        seeds.append(seed)
        found = examined.circuit()
        if not found.paths:
            continue
        story = tell(examined, found)
        for path, step in reversed(story.order):
            reader, source = _ends(path)
            when.setdefault(f"{reader} ← {source}", {})[seed] = step
        for hop in range(story.losses.shape[1]):
            when.setdefault(f"loss of hop {hop + 1}", {})[seed] = story.learned(hop)
    ordered = sorted(when.items(), key=lambda item: (item[0].startswith("loss"), item[0]))
    rows = [[step, *(_moment(found, seed) for seed in seeds)] for step, found in ordered]
    table(("step", *(f"seed {seed}" for seed in seeds)), rows)
    say("", "the training step at which attention passed 0.5; · where the circuit has no such path")


def _ends(path: Path) -> tuple[str, str]:
    return short_role(path.reader), short_role(path.source)


def _short(layer: int, head: int, reader: str, source: str) -> str:
    return f"{layer}.{head} {reader}←{source}"


def _moment(found: dict[int, float | None], seed: int) -> str:
    if seed not in found:
        return "·"
    step = found[seed]
    return "never" if step is None else f"{step:.0f}"
