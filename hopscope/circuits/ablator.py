"""`Ablator`: the losses of a model on its examples, with heads changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablation import WORDS, Ablation, changes_of
from hopscope.circuits.adapters import AnyModel, CallbackModel, TransformerAdapter, adapter_of
from hopscope.circuits.attention import patterns
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Estimate, estimate_columns
from hopscope.circuits.engine import Adapter, check_attention, check_finite
from hopscope.circuits.examples import Examples, Questions, check_interval, examples_of
from hopscope.circuits.pattern import Head, Pattern
from hopscope.circuits.prescriber import Prescriber, prescriber_of
from hopscope.circuits.progress import Progress
from hopscope.circuits.slices import Gathered, output_slices
from hopscope.circuits.tables import other_tables, with_tables
from hopscope.circuits.walk import Sliced, Walk
from hopscope.configs import Config, FactTask
from hopscope.display import Displayed, data_frame
from hopscope.errors import CircuitError


class Ablator:
    """Measures the losses of a model on some examples, with heads changed."""

    def __init__(self, model: AnyModel, examples: Examples) -> None:
        if not isinstance(examples, Examples):
            raise CircuitError(
                "an Ablator takes Examples, as examples_of(task, 128) makes; got "
                f"{type(examples).__name__}"
            )
        adapter = adapter_of(model)
        self.adapter, self.examples = adapter, examples.on(adapter.device)
        self.prescriber = prescriber_of(adapter, self.examples)
        self.read = examples.read_of(adapter.answers_at())
        if examples.read is not None and self.read < examples.read:
            raise CircuitError(
                f"the loss looks at the last {examples.read} positions; this model answers at "
                f"{self.read}: examine it on fewer"
            )
        self._slices, self._terms = [slice(0, len(examples))], [self._whole]
        if not isinstance(adapter, CallbackModel):
            whole = Sliced(adapter, self.examples, self.read)
            self._slices = whole.slices
            self._terms = [Walk(whole, some).terms for some in whole.slices]
        self._checked = False

    @torch.no_grad()
    def losses(
        self,
        ablations: Sequence[Ablation],
        progress: Progress | None = None,
        ask: Callable[[], None] = lambda: None,
    ) -> Float[Tensor, "variant batch hop"]:
        """The loss of every example and hop under every ablation. `ask` is called between layers;
        an exception that it raises ends the measurement.
        """
        if isinstance(ablations, Ablation) or not len(ablations):
            raise CircuitError("losses() takes a non-empty list of ablations")
        self._check_changes(ablations)
        self._check_attention()
        found, done = [Gathered(len(self.examples)) for _ in ablations], 0
        for some, terms in zip(self._slices, self._terms, strict=True):
            for number, its in terms(ablations, ask):
                found[number].put(some, its)
                if some.stop == len(self.examples):
                    found[number].all = self.examples.losses_from(found[number].all)
                done += 1
                if progress is not None:
                    progress.at(done, len(self._slices) * len(ablations))
        losses = torch.stack([its.all for its in found])
        self._check_finite(ablations, losses)
        return losses

    def _check_changes(self, ablations: Sequence[Ablation]) -> None:
        """Raise CircuitError for heads and roles that do not exist."""
        changes = dict.fromkeys(each for ablation in ablations for each in ablation.changes)
        for head in dict.fromkeys(head for head, _ in changes):
            check_head(self.adapter, head)
        patterns = {pattern for _, pattern in changes}
        for role in {role for its in patterns for role, _ in its.targets}:
            self.examples.number(role)

    def _check_finite(self, ablations: Sequence[Ablation], losses: Tensor) -> None:
        """Raise CircuitError if a loss is not finite: the model's own, or one with an ablation."""
        fine = torch.isfinite(losses).flatten(1).all(1).tolist()
        if all(fine):
            return
        untouched = Ablation()
        first = ablations[fine.index(False)]
        if first != untouched:
            self.losses([untouched])
            raise CircuitError(
                f"with {_told(first)} the loss is not a finite number, though the model's own is: "
                "numbers overflow there; change other heads, or mark answers by a loss that stays "
                "finite"
            )
        check_finite(losses[ablations.index(first)], "the model's loss")

    def _whole(
        self, ablations: Sequence[Ablation], ask: Callable[[], None]
    ) -> Iterator[tuple[int, Tensor]]:
        """The number and the loss terms of each ablation, each with a full forward pass."""
        model, examples = self.adapter, self.examples
        assert isinstance(model, CallbackModel)
        every = model.layers * model.heads  # attention is kept for all of them
        most = budget.ablated_at_once(model.device, every, examples.length, 0)
        slices = output_slices(model, examples, most)
        parts = [examples.part(some) for some in slices]
        prescribers = [self.prescriber]
        if len(slices) > 1:
            prescribers = [prescriber_of(model, part) for part in parts]
        zipped = [*zip(slices, parts, prescribers, strict=True)]
        for number, ablation in enumerate(ablations):
            ask()
            terms = Gathered(len(examples))
            for some, part, prescriber in zipped:
                outputs, _ = as_a_whole(model, part, prescriber, ablation)
                terms.put(some, examples.terms_of(outputs, some))
            yield number, terms.all

    def check_paths(self, changes: Mapping[Head, Pattern]) -> None:
        """Raise CircuitError if a row is to look at a role of its chain that it can see in no
        example: the row would attend to itself instead, which is another ablation.
        """
        for (layer, head), pattern in changes.items():
            prescriber = self.prescriber.of(layer)
            for role, target in pattern.targets:
                if target.when or any(source.where != "own" for source in target.every):
                    continue
                spots = prescriber.spots(role, self.examples.length)
                if len(spots) and not bool(prescriber.drawn(target, spots)[1].any()):
                    raise CircuitError(
                        f"{layer}.{head}: {role} can never see {target}: in every example it "
                        "comes later, or before the layer's window"
                    )

    def _check_attention(self) -> None:
        """Raise CircuitError, on the first call, if the attention of a user's model is invalid."""
        if isinstance(self.adapter, CallbackModel):
            self.adapter.check(self.examples.inputs)
        elif not self._checked and type(self.adapter) is not TransformerAdapter:
            for layer, pattern in enumerate(patterns(self.adapter, self.examples.inputs[:2])):
                check_attention(layer, pattern, self.adapter.causal)
        self._checked = True


@torch.no_grad()
def as_a_whole(
    model: CallbackModel, examples: Examples, prescriber: Prescriber, ablation: Ablation
) -> tuple[Tensor, Float[Tensor, "layer batch head seq seq"]]:
    """Outputs and attention, with heads changed, of a model that cannot be run layer by layer."""
    if ablation.carries:
        raise CircuitError(
            "a CallbackModel cannot replace head outputs: replace their attention, or cut the "
            "model into blocks (BlockAdapter)"
        )
    seen: dict[int, Tensor] = {}

    def edit(layer: int, pattern: Tensor) -> Tensor:
        seen[layer] = prescriber.of(layer).replaced(ablation.patterns(layer), pattern)
        return seen[layer]

    outputs = model.outputs(examples.inputs, edit)
    return outputs, torch.stack([seen[layer] for layer in range(model.layers)])


def _told(ablation: Ablation) -> str:
    """The first change of an ablation, and how many others there are."""
    (layer, head), pattern = ablation.changes[0]
    others = len(ablation.changes) - 1
    return f"{layer}.{head} {str(pattern)[:60]}{f' (and {others} more)' if others else ''}"


def check_head(adapter: Adapter | CallbackModel, head: Head) -> None:
    """Raise CircuitError if the model has no such head (layer, head)."""
    if not (0 <= head[0] < adapter.layers and 0 <= head[1] < adapter.heads):
        raise CircuitError(
            f"there is no head {head[0]}.{head[1]}; this model has layers 0 … "
            f"{adapter.layers - 1} with heads 0 … {adapter.heads - 1}"
        )


EXAMPLES = 256


class Ablated(Config):
    """The losses with some heads changed."""

    changed: str
    losses: tuple[float, ...]
    """The mean loss of every hop."""
    rise: Estimate
    """The rise of the mean loss over hops, paired over examples."""

    @property
    def loss(self) -> float:
        """The mean loss over hops."""
        return sum(self.losses) / len(self.losses)


class Ablations(Displayed, Config):
    """The losses of a model, or of its circuit, and with heads changed in several ways."""

    of: Literal["the model", "the circuit"]
    """What was changed."""
    examples: int
    seed: int
    chance: float
    model: tuple[float, ...]
    """The losses of every hop with nothing changed."""
    asked: tuple[int, ...]
    """The hop that each loss belongs to."""
    rows: tuple[Ablated, ...]

    def records(self) -> list[dict[str, Any]]:
        """A row with nothing changed, which has no rise, and a row for each change."""
        every = [(self.of, self.model, None), *((r.changed, r.losses, r.rise) for r in self.rows)]
        return [
            {
                "changed": changed,
                "loss": sum(losses) / len(losses),
                **{f"hop_{n}": loss for n, loss in zip(self.asked, losses, strict=True)},
                **estimate_columns("rise", rise),
            }
            for changed, losses, rise in every
        ]

    def frame(self) -> Any:
        """A data frame (pandas) of the records."""
        return data_frame(self.records())

    def __repr__(self) -> str:
        return f"Ablations(of {self.of}, {len(self.rows)} in all, {self.examples} examples)"

    def __str__(self) -> str:
        first = "nothing changed"
        width = max(map(len, (first, *(row.changed for row in self.rows))))
        lines = [f"{first:<{width}}  loss {np.mean(self.model):.4f}"]
        lines += [
            f"{row.changed:<{width}}  loss {row.loss:.4f}  rise {row.rise}" for row in self.rows
        ]
        if self.rows:
            lines.append(f"means over {self.examples:,} examples; rise with its 95 % interval")
        return "\n".join(lines)


def ablate(
    model: AnyModel,
    task: Questions,
    asked: Mapping[str, Mapping[Head, Pattern]],
    circuit: Circuit | None = None,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
) -> Ablations:
    """The losses with each set of changes in `asked` (by its name), beside the losses of the model.
    If a circuit is given, the changes are made on top of it, and its losses replace the model's.
    """
    check_interval(examples)
    adapter = adapter_of(model)
    drawn = examples_of(task, examples, seed)
    first = circuit.ablation() if circuit else Ablation()
    every = [first, *(Ablation.of(changes) for changes in asked.values())]
    changes = [change for each in every for _, change in each.changes]
    others = partial(other_tables, adapter, task, seed)
    ablator = Ablator(adapter, with_tables(drawn, changes, others, circuit))
    for its in asked.values():
        ablator.check_paths(its)
    usual, *changed = ablator.losses(every, Progress("ablations")).double().cpu().numpy()
    return Ablations(
        of="the circuit" if circuit else "the model",
        examples=examples,
        seed=seed,
        chance=drawn.chance,
        model=tuple(usual.mean(0).tolist()),
        asked=tuple(
            task.asked_hops() if isinstance(task, FactTask) else range(1, usual.shape[1] + 1)
        ),
        rows=tuple(
            Ablated(
                changed=name,
                losses=tuple(losses.mean(0).tolist()),
                rise=Estimate.of((losses - usual).mean(-1)),
            )
            for name, losses in zip(asked, changed, strict=True)
        ),
    )


def asked_for(
    texts: Sequence[str], base: Mapping[Head, Pattern] | None = None
) -> dict[str, dict[Head, Pattern]]:
    """Changes made together, from text, under one name; a head alone (1.3) means 1.3=uniform."""
    said = [text if "=" in text else f"{text}=uniform" for text in texts]
    return {" ".join(said): changes_of(said, base)}


def every_head(
    adapter: Adapter | CallbackModel, base: Mapping[Head, Pattern] | None = None
) -> dict[str, dict[Head, Pattern]]:
    """Every head in turn, ablated in five ways: uniform, itself, previous, mean, resample (the last
    two not for a CallbackModel, whose head outputs cannot be replaced).
    """
    ways = {name: Pattern(rest=rest) for name, rest in WORDS.items()}
    if isinstance(adapter, CallbackModel):
        ways = {name: pattern for name, pattern in ways.items() if not pattern.carried}
    return {
        f"{layer}.{head}={name}": {**(base or {}), (layer, head): pattern}
        for layer in range(adapter.layers)
        for head in range(adapter.heads)
        for name, pattern in ways.items()
    }
