"""`Circuit`: its components, what is lost without each, and how faithful the circuit is.

A circuit is data: it can be printed, saved as JSON and loaded without torch. docs/circuits.md
describes the format.
"""

import json
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Literal

from hopscope import __version__
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.account import Account
from hopscope.circuits.components import (
    AttentionKind,
    Component,
    Estimate,
    Found,
    HeadAlone,
    Losses,
    PathFlow,
    Score,
    Table,
    estimate_columns,
)
from hopscope.circuits.pattern import AS_IN_MODEL, ITSELF, UNIFORM, Head, Pattern
from hopscope.circuits.verdict import judged, lacks_of, warnings_of
from hopscope.configs import Config, Discovery, Task
from hopscope.display import Displayed, data_frame
from hopscope.errors import CircuitError, ConfigError
from hopscope.facts import Role
from hopscope.store.files import read_bytes, write_bytes
from hopscope.theory import Path

FORMAT: Literal[6] = 6
"""The version of the format of circuit files."""


class Circuit(Displayed, Config):
    """What the attention heads of a model do to solve a task, measured."""

    format: Literal[6] = FORMAT
    model: str
    """SHA-256 of the model's weights."""
    task: Task | None
    roles: tuple[Role, ...]
    layers: int
    heads: int
    """The number of heads in each layer."""
    components: tuple[Component, ...]
    itself: tuple[Head, ...] = ()
    """Heads that attend to their own position where they are ablated; all others attend evenly."""
    tables: tuple[Table, ...] = ()
    losses: Losses
    scores: tuple[Score, ...] = ()
    """The circuit run in six ways: recovered, and agreement with the model."""
    without_weak: tuple[Estimate, Estimate] | None = None
    """The share of the gap that is lost without all weak components together, with prescribed and
    with computed attention; None if fewer than two are weak, or if it was not measured."""
    left_out: tuple[HeadAlone, ...] = ()
    """Heads that the model needs on the examples of the search, and the circuit leaves out, for
    each way to replace them; of its own heads, the rows that it leaves out."""
    flow: PathFlow | None = None
    """The answers that its named paths bring to the query; None if that cannot be known (without
    facts, or if rows follow a relation)."""
    found: Found | None = None
    """How the circuit was found; None if patching found it, in a language model."""
    account: Account | None = None
    """What its components move; None until measured (`hopscope patch`)."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every path of the circuit, layer by layer."""
        return tuple(sorted({path for each in self.components for path in each.paths}))

    @property
    def steps(self) -> dict[tuple[Role, Role], list[Head]]:
        """The heads that take each step from a source to a destination, layer by layer."""
        found: dict[tuple[Role, Role], list[Head]] = {}
        for path in self.paths:
            found.setdefault((path.source, path.destination), []).append((path.layer, path.head))
        return found

    @property
    def tracked(self) -> tuple[Path, ...]:
        """The paths whose attention can be followed through training. They are the paths of the
        circuit, and a path for each row that follows a relation or looks at the position before;
        its source is a role with that name (`hop`; for a relation followed twice `hop 2`).
        """
        named = {
            Path(*head, role, source.followed)
            for each in self.components
            for source in each.sources
            if source.followed and not source.role
            for head, role in each.rows
        }
        return tuple(sorted({*self.paths, *named}))

    @property
    def asked(self) -> dict[str, int]:
        """The hop (or fact) that asks for each symbol, from 1."""
        if self.task:
            return self.task.graph().asked
        return self.account.asked if self.account else {}

    def recovered(self, attention: AttentionKind | None = None) -> float:
        """The share of the gap, between everything ablated and the model, that the circuit
        recovers. By default this is with prescribed attention, or with computed attention if
        nothing is prescribed. NaN if there is no gap or the loss was not measured.
        """
        losses = self.losses
        if losses.gap <= 0:
            return float("nan")
        loss = losses.mean(attention) if attention else losses.circuit
        return (losses.mean("ablated") - loss) / losses.gap

    @property
    def sufficient(self) -> bool:
        """True if the circuit recovers enough with prescribed attention (if there is any)."""
        return self.recovered() >= self.enough

    @property
    def self_contained(self) -> bool:
        """True if the circuit recovers enough with computed attention: its heads compute their
        attention from what the circuit alone provides.
        """
        return self.recovered("computed") >= self.enough

    @property
    def enough(self) -> float:
        """The share of the gap that a sufficient circuit recovers."""
        return self.found.settings.enough if self.found else Discovery().enough

    @property
    def named_rows(self) -> tuple[int, int]:
        """The number of attention rows that a rule describes (not a table or the model) and in most
        of which it holds, and the number of all attention rows.
        """
        rows = [(each.is_named, len(each.rows)) for each in self.components]
        return sum(n for named, n in rows if named), sum(n for _, n in rows)

    @property
    def unnamed(self) -> tuple[Component, ...]:
        """Components whose rows are tables or the model's own attention, or in which the rule does
        not hold.
        """
        return tuple(each for each in self.components if not each.is_named)

    @property
    def verdict(self) -> str:
        """One line: whether the model is explained, what is recovered, how many rows are named."""
        rows, every = self.named_rows
        if self.losses.mean("model") >= self.losses.chance:
            return "Nothing to explain: the model's loss is not below chance"
        if self.losses.gap <= 0:
            return "Nothing to recover: the loss is as low with everything ablated"
        if any(its.recovered is None for its in self.scores if its.rest in ("even", "interchange")):
            return "Nothing to recover: the loss may be as low with everything ablated"
        shares = f"{self.recovered():z.1%} recovered"
        if self.losses.prescribed is None:
            shares += " (computed attention, all else from another question)"
        elif self.losses.computed is not None:
            shares += f" ({self.recovered('computed'):z.1%} with computed attention)"
        return f"{judged(self)}: {shares}, {rows} of {every} attention rows named"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons to doubt the circuit, one line each."""
        return tuple(warnings_of(self))

    @property
    def lacks(self) -> tuple[str, ...]:
        """Reasons why a sufficient circuit is only part of the explanation, one line each."""
        return tuple(lacks_of(self)) if self.sufficient else ()

    def pattern(self, layer: int, head: int) -> Pattern:
        """The prescribed attention of a head; layers and heads count from 0."""
        if not (0 <= layer < self.layers and 0 <= head < self.heads):
            raise CircuitError(
                f"there is no head {layer}.{head} in this circuit: its last is "
                f"{self.layers - 1}.{self.heads - 1}"
            )
        rest = ITSELF if (layer, head) in self.itself else UNIFORM
        targets = [
            (role, each.target)
            for each in self.components
            for at, role in each.rows
            if at == (layer, head)
        ]
        return Pattern(tuple(targets), rest if self.found else AS_IN_MODEL)

    @property
    def patterns(self) -> dict[Head, Pattern]:
        """The prescribed attention of every head of the model."""
        every = [(layer, head) for layer in range(self.layers) for head in range(self.heads)]
        return {at: self.pattern(*at) for at in every}

    def ablation(self) -> Ablation:
        """The circuit as an ablation of its model, which replaces all attention."""
        return Ablation.of(self.patterns)

    def check_model(self, digest: str) -> None:
        """Raise CircuitError if the circuit was not found in the weights with this digest."""
        if digest != self.model:
            raise CircuitError(
                f"this circuit was found in another model or at another step (weights "
                f"{self.model[:12]}…, these are {digest[:12]}…): run discover on this one"
            )

    def differs_from(self, settings: Discovery) -> str | None:
        """One line on how the search that found this circuit differs from a search with these
        settings and this version of hopscope; None if it does not differ.
        """
        if self.found is None:
            return None
        version = self.found.version
        said = [] if version == __version__ else [f"hopscope {version} (this is {__version__})"]
        searches = self.found.settings.searches  # more searches do not change the circuit
        if changed := self.found.settings.differences(settings.replace(searches=searches)):
            said.append(f"other settings: {changed}")
        return f"this circuit was found with {' and '.join(said)}" if said else None

    def save(self, path: FilePath | str) -> None:
        """Write the circuit to a JSON file, which `Circuit.load` reads."""
        if FilePath(path).suffix in (".svg", ".pdf", ".png"):
            raise CircuitError(
                f"{path} has the ending of a figure; a circuit is saved as JSON: `hopscope circuit "
                "RUN --figure FILE` draws it, in Python circuit.picture(path)"
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
        """The circuit in a file that `save` wrote."""
        try:
            return cls.from_json(read_bytes(FilePath(path)))
        except ConfigError as error:
            raise ConfigError(
                f"{path} is not a circuit as `hopscope circuit --save` writes it: {error}"
            ) from error

    def frame(self) -> Any:
        """A data frame (pandas) with a row for each component. `lost` is the share of the gap that
        is lost without the component, with prescribed attention; `lost_computed` is the same with
        computed attention; `holds` is the share of its rows in which its rule holds in the model.
        """
        return data_frame(
            {
                "component": each.name,
                "what": self.described(each),
                "kind": each.kind,
                "written": each.written,
                **estimate_columns("lost", each.lost),
                **estimate_columns("lost_computed", each.lost_computed),
                **estimate_columns("holds", each.holds),
                "stability": each.stability,
            }
            for each in self.components
        )

    def __repr__(self) -> str:
        return (
            f"Circuit({len(self.components)} components, {len(self.paths)} paths: {self.verdict})"
        )

    def __str__(self) -> str:
        lines = [self.verdict, self.loss_line]
        lines += [f"warning: {line}" for line in self.warnings]
        lines += [f"lacks: {line}" for line in self.lacks]
        for each in self.components:
            routes = each.kind == "routes"
            lost = each.lost_computed if routes else each.lost
            how = " if attention is computed" if routes else ""
            worth = (
                each.kind,
                f"{lost.mean:.1%} lost without it{how}" if lost else None,
                f"holds in {each.holds.mean:.0%} of its rows"
                if each.holds and each.only_enough
                else None,
            )
            said = ", ".join(filter(None, worth))
            beside = f"  ({said})" if said else ""
            lines.append(f"  {each.name}  {self.described(each)}{beside}")
        return "\n".join([*lines, *self.replace_each_other])

    @property
    def replace_each_other(self) -> list[str]:
        """A line if weak components replace each other: not all of them can be removed."""
        least = self.found.settings.needed if self.found else 0.0
        lost = zip(self.without_weak or (), ("prescribed", "computed"), strict=False)
        shares = [f"{its.mean:.0%} with {attention}" for its, attention in lost if its.low > least]
        if not shares:
            return []
        return [f"without all weak components together, {' and '.join(shares)} attention is lost"]

    @property
    def loss_line(self) -> str:
        """One line with the losses of the model, of the circuit, with everything ablated, and at
        chance.
        """
        losses = self.losses
        both = losses.prescribed and losses.computed
        computed = f" · {losses.mean('computed'):.4f} with computed attention" if both else ""
        return (
            f"loss: {losses.mean('model'):.4f} of the model · {losses.circuit:.4f} of the "
            f"circuit{computed} · {losses.mean('ablated'):.3f} everything ablated · "
            f"{losses.chance:.3f} by chance"
        )

    def described(self, component: Component) -> str:
        """What a component does, as text: `target → destinations`."""
        every = len(self.roles) if component.layer < self.layers - 1 else None
        roles = component.destinations
        where = "every role" if len(roles) == every else ", ".join(map(str, roles))
        return f"{component.target} → {where}"


def check_circuit(given: object) -> None:
    """Raise CircuitError if the argument is not a Circuit."""
    if not isinstance(given, Circuit):
        raise CircuitError(
            f"expected the model's circuit after the model, as `discover` finds it; got "
            f"{type(given).__name__}"
        )
