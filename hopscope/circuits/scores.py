"""Scores of a circuit: how much of the task it recovers, and how far it agrees with its model.

A circuit is run with prescribed attention (its rows look at their targets) and with computed
attention (its rows compute it from what the circuit provides). All other rows are ablated in one
of three ways: with even attention (as in the search), or with their output replaced by its mean
over examples, or by that in the previous example. All are measured on the same fresh examples.

This module shares no code with the walk of the search, so the scores also check its losses.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp
from statistics import fmean

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from hopscope.circuits.ablation import Ablation
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import chunks
from hopscope.circuits.components import AttentionKind, Estimate, PerExample, Rest, Score
from hopscope.circuits.engine import Adapter, Brought, Heads, forward, record
from hopscope.circuits.examples import Examples
from hopscope.circuits.pattern import Pattern
from hopscope.circuits.prescriber import Prescriber, prescriber_of
from hopscope.circuits.slices import Gathered, output_slices
from hopscope.circuits.walk import from_model

RESTS: tuple[Rest, ...] = ("even", "mean", "resample")


@torch.no_grad()
def scores_of(
    adapter: Adapter | CallbackModel, examples: Examples, circuit: Ablation, nothing: Ablation
) -> tuple[Score, ...]:
    """The scores of a circuit with prescribed and with computed attention, and all other rows
    ablated in three ways (for a CallbackModel, where only attention can be replaced, in one).
    """
    runs = Runs(adapter, examples)
    rests = RESTS[:1] if isinstance(adapter, CallbackModel) else RESTS
    states: dict[AttentionKind, Ablation] = {"prescribed": circuit, "computed": circuit.computed}
    asked = [(state, rest) for rest in rests for state in (nothing, *states.values())]
    model, *measured = runs.measured(asked)
    each, found = iter(measured), []
    for rest in rests:
        ablated = next(each).losses
        gap = ablated - model.losses
        for attention in states:
            its = next(each)
            found.append(
                Score(
                    attention=attention,
                    rest=rest,
                    recovered=Estimate.ratio(ablated - its.losses, gap),
                    agreement=its.agreement,
                    same_answer=its.same_answer,
                )
            )
    return tuple(found)


@dataclass(frozen=True)
class Measured:
    """The losses in a state, and the agreement of its outputs with the model's at the answers."""

    losses: PerExample
    """The loss of each example, mean over hops."""
    agreement: Estimate | None
    same_answer: Estimate | None


class Runs:
    """Runs a model on examples in given states of the search, a few examples at a time."""

    def __init__(self, adapter: Adapter | CallbackModel, examples: Examples) -> None:
        self.adapter, self.examples = adapter, examples.on(adapter.device)
        self.read = self.examples.read_of(adapter.answers_at())
        most = chunks(adapter, self.examples)[0].stop
        self.chunks = output_slices(adapter, self.examples, most)

    def measured(self, asked: Sequence[tuple[Ablation, Rest]] = ()) -> list[Measured]:
        """The measurements of the model, and of each state, in which all rows without a target are
        ablated in the given way. All are compared with the model.
        """
        count = len(self.examples)
        found = [(Gathered(count), Gathered(count), Gathered(count)) for _ in range(1 + len(asked))]
        for some in self.chunks:
            prescriber = prescriber_of(self.adapter, self.examples.part(some))
            model = self._model(prescriber, some).float().cpu()
            for number, (terms, *both) in enumerate(found):
                outputs = model
                if number:
                    outputs = self._outputs(prescriber, some, *asked[number - 1]).float().cpu()
                terms.put(some, self.examples.terms_of(outputs, some))
                for each, part in zip(
                    both, self.compared(prescriber.examples, model, outputs), strict=True
                ):
                    each.put(some, part)
        return [
            Measured(self._losses(terms.all), *self.agreement(first.all, second.all))
            for terms, first, second in found
        ]

    @torch.no_grad()
    def known(self, state: Ablation) -> float | None:
        """The share of right answers in a state, beyond chance (`Losses.known_ablated`). Chance is
        that of the task, or the share of answers that would be right in other examples.

        Rows without a target bring their means, where outputs can be replaced: even attention would
        count the answers in an example, of which the most frequent is often right.
        """
        examples = self.examples
        if examples.targets is None or not examples.classes:
            return None
        rest: Rest = "even" if isinstance(self.adapter, CallbackModel) else "mean"
        found = []
        for some in self.chunks:
            part = prescriber_of(self.adapter, examples.part(some))
            outputs = part.examples.answers_of(self._outputs(part, some, state, rest))
            if not _of_classes(examples, outputs):
                return None
            found.append(outputs.argmax(-1))
        both = zip(torch.cat(found).T.tolist(), examples.targets.T.tolist(), strict=True)
        return fmean(_beyond_chance(*each, exp(-examples.chance)) for each in both)

    def _model(self, prescriber: Prescriber, some: slice) -> Tensor:
        """The model's own outputs for some examples at the read positions."""
        if isinstance(self.adapter, CallbackModel):
            return self._outputs(prescriber, some, Ablation(), "even")
        ends, _ = self._recorded
        return self.adapter.unembed(ends[some])

    def _outputs(self, prescriber: Prescriber, some: slice, state: Ablation, rest: Rest) -> Tensor:
        """The outputs in a state for some examples at the read positions."""
        inputs = self.examples.inputs[some]

        if isinstance(self.adapter, CallbackModel):

            def edit(layer: int, own: Tensor) -> Tensor:
                return prescriber.of(layer).replaced(state.patterns(layer), own)

            return self.adapter.outputs(inputs, edit)[:, -self.read :]

        def attend(layer: int, heads: Heads) -> Brought:
            weights = self._weights(prescriber.of(layer), state.patterns(layer), heads)
            brought = weights.to(heads.values.dtype) @ heads.values
            if rest == "even":
                return brought
            instead = self._instead[rest][layer][some if rest == "resample" else slice(None)]
            for head, pattern in state.patterns(layer).items():
                roles = [role for role, _ in pattern.targets]
                rows = prescriber.examples.positions(*roles)[..., None]
                brought[:, head] = torch.where(rows, brought[:, head], instead[:, head])
            return brought

        end = forward(self.adapter, self.adapter.embed(inputs), attend)
        return self.adapter.unembed(end[:, -self.read :])

    def _weights(
        self, prescriber: Prescriber, patterns: Mapping[int, Pattern], heads: Heads
    ) -> Tensor:
        """The attention of a layer in which some heads follow a pattern. The model's own attention
        is computed only for heads that need it.
        """
        every, length = range(self.adapter.heads), self.examples.length
        needed = [n for n in every if n not in patterns or from_model(patterns[n])]
        own = heads.weights(heads=needed).unbind(1) if needed else ()
        known = dict(zip(needed, own, strict=True))
        found = [
            prescriber.attention_of(patterns[n], known.get(n), length)
            if n in patterns
            else known[n]
            for n in every
        ]
        return torch.stack(found, 1)

    @cached_property
    def _instead(self) -> dict[Rest, list[Brought]]:
        """The outputs of the heads of each layer in the model: their mean over all examples, and
        those in the previous example (of the first: the last).
        """
        _, brought = self._recorded
        return {
            "mean": [layer.mean(0, keepdim=True) for layer in brought],
            "resample": [layer.roll(1, 0) for layer in brought],
        }

    @cached_property
    def _recorded(self) -> tuple[Float[Tensor, "row read d_model"], list[Brought]]:
        """The model's streams after the last layer at the read positions, and the outputs of the
        heads of each layer.
        """
        assert not isinstance(self.adapter, CallbackModel)
        ends, brought = [], []
        for some in self.chunks:
            recorded = record(self.adapter, self.examples.inputs[some])
            ends.append(recorded.streams[-1][:, -self.read :])
            brought.append(recorded.brought)
        return torch.cat(ends), [torch.cat(layer) for layer in zip(*brought, strict=True)]

    def _losses(self, terms: Tensor) -> PerExample:
        losses: PerExample = self.examples.losses_from(terms).mean(-1).double().cpu().numpy()
        return losses

    def compared(self, examples: Examples, model: Tensor, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Two values for each example, from outputs at the answers. For classes: the KL divergence
        from the model's outputs, and the share of equal most likely classes. For vectors or a
        number: the outputs of the model, and the outputs themselves.
        """
        model, outputs = (examples.answers_of(each).double() for each in (model, outputs))
        if not _of_classes(examples, outputs):
            return model, outputs
        # A model may answer several hops at one position, each with classes of its own.
        model, outputs = (each.unflatten(-1, (examples.abreast, -1)) for each in (model, outputs))
        logs, others = model.log_softmax(-1), outputs.log_softmax(-1)
        shares = logs.exp()
        terms = torch.where(shares > 0, shares * (logs - others), 0)  # 0 for classes ruled out
        divergence = terms.sum(-1).flatten(1).mean(1)
        same = (model.argmax(-1) == outputs.argmax(-1)).double().flatten(1).mean(1)
        return divergence, same

    def agreement(self, first: Tensor, second: Tensor) -> tuple[Estimate | None, Estimate | None]:
        """The agreement with the model, from what `compared` returned for all examples: for classes
        KL divergence and the share of equal most likely classes, else R² and None.
        """
        if first.dim() == 1:
            return Estimate.of(first.numpy()), Estimate.of_shares(second.numpy())
        spread = (first - first.mean(0)).square().flatten(1).sum(1).numpy()
        off = (first - second).square().flatten(1).sum(1).numpy()
        lost = Estimate.ratio(off, spread)
        if lost is None:
            return None, None
        return Estimate(mean=1 - lost.mean, low=1 - lost.high, high=1 - lost.low), None


def _of_classes(examples: Examples, outputs: Tensor) -> bool:
    """True if outputs are logits of several classes. A single number (as for yes or no) has no most
    likely class.
    """
    return examples.classes and outputs.shape[-1] > 1


def _beyond_chance(found: Sequence[int], right: Sequence[int], chance: float) -> float:
    """The share of right answers beyond chance: `chance`, or the share of answers that would be
    right in other examples.
    """
    often = Counter(right)
    by_luck = max(fmean(often[each] for each in found) / len(right), chance)
    low = Estimate.of_shares(np.equal(found, right).astype(float)).low
    return (low - by_luck) / (1 - by_luck) if low > by_luck else 0.0
