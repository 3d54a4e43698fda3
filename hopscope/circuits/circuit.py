"""What was found in a model: what every head does, what each part is worth, and what is left over.

A circuit is data. It knows how to print itself and how to be written to and read from JSON; the
file's format is described in docs/circuits.md.
"""

import json
from pathlib import Path as FilePath
from typing import Literal

from hopscope.circuits.ablation import Ablation, Head
from hopscope.circuits.mechanism import FROM_MODEL, Mechanism
from hopscope.configs import Config, Task
from hopscope.errors import CircuitError
from hopscope.facts import Path, Role
from hopscope.store.files import read_bytes, write_bytes

PATH_WEIGHT = 0.2
"""An aim's target is a path if it gets at least this share of the attention."""


Kind = Literal["carries", "locates", "weak", "background"]


class HeadReport(Config):
    """What one head does."""

    layer: int
    head: int
    mechanism: Mechanism

    @property
    def at(self) -> Head:
        return (self.layer, self.head)

    @property
    def name(self) -> str:
        """The mechanism in a few words, if there are such."""
        mechanism = self.mechanism
        targets = {aim.targets[0] for _, aim in mechanism.aims if len(aim.parts) == 1}
        if not mechanism.aims:
            return "idle"
        if all(_reads_own_key(reader, paths) for reader, paths in _sources(mechanism).items()):
            return "previous position"
        if {target.where for target in targets} == {"position"}:
            return "by position"
        return ""


class Estimate(Config):
    """A mean over examples, and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} … {self.high:.3f})"


class Part(Config):
    """Something the circuit cannot do without: a row of one head, or its rows that are no paths."""

    layer: int
    head: int
    readers: tuple[Role, ...]
    paths: tuple[Path, ...] = ()
    kind: Kind
    """Carries what is answered; or only tells later heads where to look (removing it costs little
    while those are told by hand); or, for a path, neither threefold, and yet not to be spared;
    or, for other rows, something added to every position that the heads after it expect."""
    cost: Estimate
    """Loss without it, when all other heads follow the circuit."""
    own_cost: Estimate
    """Loss without it, when the rows that matter attend on their own, and all others do nothing."""
    alone_cost: Estimate
    """Loss of the model as it is without this part alone."""
    votes: float
    """Share of the resampled batches in which it is of the same kind."""

    @property
    def at(self) -> Head:
        return (self.layer, self.head)


class Alternative(Config):
    """A path that the circuit leaves out, and that could stand in for one it has."""

    path: Path
    instead_of: Path
    loss: float


class Shared(Config):
    """One step that several heads do together."""

    reader: Role
    source: Role
    heads: tuple[Head, ...]
    cost: Estimate
    """Loss without all of them."""


class Restored(Config):
    """A head left out, given back its own attention: what the circuit's loss becomes."""

    layer: int
    head: int
    loss: float


class Losses(Config):
    """Losses of every hop, over the same fresh examples."""

    clean: tuple[float, ...]
    """Of the model as it is."""
    ideal: tuple[float, ...]
    """When every head follows its mechanism."""
    own: tuple[float, ...]
    """When the rows that matter attend on their own, and all others do nothing."""
    ablated: tuple[float, ...]
    """When no head does anything."""
    guess: float
    """Of an answer that ignores how the facts connect."""
    limit: float
    """A mean loss up to this counts as solved."""

    def mean(self, which: Literal["clean", "ideal", "own", "ablated"]) -> float:
        hops: tuple[float, ...] = getattr(self, which)
        return sum(hops) / len(hops)


class FlowCheck(Config):
    """Information followed along the paths alone."""

    reached: tuple[str, ...]
    """Symbols that the query comes to hold."""
    missed: tuple[str, ...]
    jumps: tuple[Path, ...]
    """Paths whose reader and source have nothing in common by which to find one another."""


class Switches(Config):
    """All that was chosen, so that every number can be had again."""

    examples: int
    """Of the search; each of the batches that measure has an eighth of them."""
    batches: int
    seed: int
    forced: bool


class Circuit(Config):
    """The mechanisms of all heads, validated."""

    format: Literal[1] = 1
    model: str
    """SHA-256 of the model's weights."""
    task: Task | None
    roles: tuple[Role, ...]
    heads: tuple[HeadReport, ...]
    parts: tuple[Part, ...]
    losses: Losses
    alternatives: tuple[Alternative, ...]
    shared: tuple[Shared, ...]
    restored: tuple[Restored, ...]
    flow: FlowCheck | None
    switches: Switches

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path of the circuit, layer by layer."""
        return tuple(sorted(path for part in self.parts for path in part.paths))

    @property
    def solved(self) -> bool:
        """Is the loss still low when every head follows its mechanism?"""
        return self.losses.mean("ideal") <= self.losses.limit

    @property
    def unexplained(self) -> tuple[Part, ...]:
        """Parts that no hypothesis replaces: rows left as the model has them."""
        return tuple(part for part in self.parts if "model" in self._wheres(part))

    def mechanism(self, layer: int, head: int) -> Mechanism:
        """What a head does."""
        return next(report.mechanism for report in self.heads if report.at == (layer, head))

    def ablation(self) -> Ablation:
        """The circuit, to be put onto its model."""
        return Ablation.of({report.at: report.mechanism for report in self.heads})

    def check_model(self, digest: str) -> None:
        """Was it found in the model with this digest?"""
        if digest != self.model:
            raise CircuitError(
                f"this circuit was found in another model (weights {self.model[:12]}…, these are "
                f"{digest[:12]}…): run discover on this one"
            )

    def save(self, path: FilePath | str) -> None:
        """Write it as JSON."""
        write_bytes(FilePath(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False).encode()

    @classmethod
    def load(cls, path: FilePath | str) -> "Circuit":
        """Read what `save` wrote."""
        return cls.from_json(read_bytes(FilePath(path)))

    def __str__(self) -> str:
        losses = self.losses
        head = (
            f"loss {losses.mean('clean'):.4f} as it is, {losses.mean('ideal'):.4f} with this "
            f"attention alone, {losses.mean('ablated'):.3f} with none"
        )
        lines = [head]
        for part in self.parts:
            worth = f"{part.kind}, {part.cost.mean:.3f} without it"
            lines.append(f"  {part.layer}.{part.head}  {self.described(part)}  ({worth})")
        return "\n".join(lines)

    def described(self, part: Part) -> str:
        """What the part does, in words."""
        mechanism = self.mechanism(*part.at)
        aims: dict[str, list[str]] = {}
        for role in part.readers:
            aims.setdefault(str(mechanism.of(role)), []).append(str(role))
        every = len(self.roles) if part.layer < self.heads[-1].layer else None
        return "; ".join(
            f"{'every role' if len(readers) == every else ', '.join(readers)} → {aim}"
            for aim, readers in aims.items()
        )

    def _wheres(self, part: Part) -> set[str]:
        mechanism = self.mechanism(*part.at)
        return {
            target.where
            for role in part.readers
            for target in mechanism.of(role).targets
            if target.where in FROM_MODEL
        }


def paths_of(head: Head, mechanism: Mechanism) -> tuple[Path, ...]:
    """The same-chain paths of a mechanism: who reads whom."""
    sources = _sources(mechanism)
    return tuple(Path(*head, reader, s) for reader, found in sources.items() for s in found)


def _sources(mechanism: Mechanism) -> dict[Role, list[Role]]:
    """For every reader, the roles of its own chain that it reads: what a path leads to.

    `other` stands for nothing, so nothing leads there.
    """
    return {
        reader: [
            target.role
            for target, weight in aim.parts
            if target.where == "own"
            and target.role is not None
            and target.role.kind != "other"
            and target.role != reader
            and weight >= PATH_WEIGHT
        ]
        for reader, aim in mechanism.aims
    }


def _reads_own_key(reader: Role, sources: list[Role]) -> bool:
    """Does a value read a key of its own fact?"""
    if reader.kind != "value" or not sources:
        return False
    return all(source.kind == "key" and source.fact == reader.fact for source in sources)
