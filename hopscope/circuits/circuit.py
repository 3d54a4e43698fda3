"""A circuit as data: what every head does, what each part is worth, and what was left out.

It prints itself, and is written to and read from JSON; the format is described in
docs/circuits.md. No torch is needed to read or show one.
"""

import json
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from hopscope import __version__
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.account import Account
from hopscope.circuits.mechanism import FROM_MODEL, Mechanism
from hopscope.circuits.parts import (
    Alternative,
    FlowCheck,
    HeadReport,
    Losses,
    Part,
    Restored,
    Shared,
    Switches,
)
from hopscope.configs import Config, Discovery, Task
from hopscope.display import Displayed
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.store.files import read_bytes, write_bytes
from hopscope.theory import Path

FORMAT: Literal[4] = 4
"""The version of the format of circuit files."""


class Circuit(Displayed, Config):
    """The mechanisms of all heads of a model, with what each is worth, measured."""

    format: Literal[4] = FORMAT
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
    account: Account | None = None
    """What moves in it; unset until it is asked for (`hopscope explain`)."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path of the circuit, layer by layer."""
        return tuple(sorted(path for part in self.parts for path in part.paths))

    @property
    def solved(self) -> bool:
        """True if the model knows more than guessing, and its loss is still low when every head
        follows its mechanism.
        """
        return self.knows_more and self.losses.low("ideal")

    @property
    def knows_more(self) -> bool:
        """True if the model as it is has a lower loss than guessing."""
        return self.losses.mean("clean") < self.losses.guess

    @property
    def finds_its_way(self) -> bool | None:
        """True if the loss is still low when the circuit's rows compute their attention from what
        the circuit alone provides: nothing else tells them where to look. None: not measured.
        """
        return None if self.losses.own is None else self.losses.low("own")

    @property
    def explained(self) -> float:
        """The share of the gap between guessing and the model that the circuit closes: 1 if with
        its attention alone the loss is the model's, 0 if there is no gap.
        """
        clean, guess = self.losses.mean("clean"), self.losses.guess
        return (guess - self.losses.mean("ideal")) / (guess - clean) if self.knows_more else 0.0

    @property
    def left_in(self) -> tuple[str, str]:
        """What was left in the model for the losses `ideal` and `ablated`, in words: a search
        writes all attention down, patches of a language model bring a donor's rows.
        """
        if self.switches.settings is None:
            return "with every other row a donor's", "with every row a donor's"
        return "with this attention alone", "with no attention"

    @property
    def unexplained(self) -> tuple[Part, ...]:
        """Parts that no hypothesis explains: their rows keep the model's attention."""
        return tuple(part for part in self.parts if "model" in self._wheres(part))

    def mechanism(self, layer: int, head: int) -> Mechanism:
        """The mechanism that replaces a head in the circuit; layers and heads count from 0."""
        for report in self.heads:
            if report.at == (layer, head):
                return report.mechanism
        last = self.heads[-1].at
        raise CircuitError(
            f"there is no head {layer}.{head} in this circuit: its last is {last[0]}.{last[1]}"
        )

    def ablation(self) -> Ablation:
        """The circuit as an ablation: put onto its model, it replaces all attention."""
        return Ablation.of({report.at: report.mechanism for report in self.heads})

    def check_model(self, digest: str) -> None:
        """Refuse other weights than those with this digest."""
        if digest != self.model:
            raise CircuitError(
                f"this circuit was found in another model or at another step (weights "
                f"{self.model[:12]}…, these are {digest[:12]}…): run discover on this one"
            )

    def differs_from(self, settings: Discovery) -> str | None:
        """How the search that found this circuit differs from one with these settings and
        this version of hopscope, in one line; None if it does not.
        """
        kept, version = self.switches.settings, self.switches.version
        if kept is None:  # no search found it, but a language model's patches
            return None
        told = [] if version == __version__ else [f"hopscope {version} (this is {__version__})"]
        if changed := kept.differences(settings):
            told.append(f"other settings: {changed}")
        return f"this circuit was found with {' and '.join(told)}" if told else None

    def save(self, path: FilePath | str) -> None:
        """Write the circuit as a JSON file, which `Circuit.load` reads."""
        if FilePath(path).suffix in (".svg", ".pdf", ".png"):
            raise CircuitError(
                f"{path} is to be a figure, and a circuit is saved as JSON: `hopscope circuit "
                "export` draws it, in Python hopscope.report.circuit.circuit_figure"
            )
        write_bytes(FilePath(path), self.to_bytes())

    def to_bytes(self) -> bytes:
        """The bytes of the file that `save` writes."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False).encode()

    def to_dict(self) -> dict[str, Any]:
        """The circuit as dictionaries, lists, numbers and strings, ready for JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> "Circuit":
        """The circuit that `to_dict` wrote."""
        return cls(**kept)

    @classmethod
    def load(cls, path: FilePath | str) -> "Circuit":
        """Read what `save` wrote."""
        return cls.from_json(read_bytes(FilePath(path)))

    def __repr__(self) -> str:
        losses = self.losses
        return (
            f"Circuit({len(self.parts)} parts, {len(self.paths)} paths, loss "
            f"{losses.mean('clean'):.4f} as it is, {losses.mean('ideal'):.4f} with these alone)"
        )

    def __str__(self) -> str:
        losses = self.losses
        alone, none = self.left_in
        head = (
            f"loss {losses.mean('clean'):.4f} as it is, {losses.mean('ideal'):.4f} {alone}, "
            f"{losses.mean('ablated'):.3f} {none}"
        )
        lines = [head]
        for part in self.parts:
            cost = part.cost or part.alone_cost
            worth = (part.kind, f"{cost.mean:.3f} without it" if cost else None)
            told = ", ".join(filter(None, worth))
            lines.append(f"  {part.name}  {self.described(part)}" + f"  ({told})" * bool(told))
        return "\n".join(lines)

    def described(self, part: Part) -> str:
        """What the part does, in words: its readers, an arrow from what they look at."""
        mechanism = self.mechanism(*part.at)
        aims: dict[str, list[str]] = {}
        for role in part.readers:
            aims.setdefault(str(mechanism.of(role)), []).append(str(role))
        every = len(self.roles) if part.layer < self.heads[-1].layer else None
        return "; ".join(
            f"{'every role' if len(readers) == every else ', '.join(readers)} ← {aim}"
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


def check_circuit(given: object) -> None:
    """Refuse what is no circuit in the place of one: a model is followed by its circuit."""
    if not isinstance(given, Circuit):
        raise CircuitError(
            f"expected the model's circuit behind the model, as `discover` finds it; got "
            f"{type(given).__name__}"
        )
