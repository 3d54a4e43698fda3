"""Scores of a circuit: how much of the task it recovers, and how far it agrees with its model.

A circuit is run with prescribed attention (its rows look at their targets) and with computed
attention (its rows compute it from what the circuit provides). All other rows are ablated in one
of three ways: with even attention (as in the search), or with their output replaced by its mean
over examples, or by that in the previous example. All are measured on the same fresh examples.

This module shares no code with the walk of the search, so the scores also check its losses.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Tensor

from hopscope.circuits.ablation import State
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.attention import chunks
from hopscope.circuits.components import AttentionKind, Estimate, PerExample, Rest, Score
from hopscope.circuits.engine import Adapter, Brought, Heads, forward, record
from hopscope.circuits.examples import Examples
from hopscope.circuits.pattern import Pattern
from hopscope.circuits.prescriber import Prescriber, prescriber_of
from hopscope.circuits.walk import from_model

RESTS: tuple[Rest, ...] = ("even", "mean", "resample")


@torch.no_grad()
def scores_of(
    adapter: Adapter | CallbackModel, examples: Examples, circuit: State, nothing: State
) -> tuple[Score, ...]:
    """The scores of a circuit with prescribed and with computed attention, and all other rows
    ablated in three ways (for a CallbackModel, where only attention can be replaced, in one).
    """
    runs = Runs(adapter, examples)
    rests = RESTS[:1] if isinstance(adapter, CallbackModel) else RESTS
    states: dict[AttentionKind, State] = {"prescribed": circuit, "computed": circuit.computed}
    asked = [(state, rest) for rest in rests for state in (nothing, *states.values())]
    model, outputs = runs.model, iter(runs.outputs(asked))
    found = []
    for rest in rests:
        ablated = runs.losses(next(outputs))
        gap = ablated - runs.losses(model)
        for attention in states:
            its = next(outputs)
            agreement, same = runs.agreement(model, its)
            found.append(
                Score(
                    attention=attention,
                    rest=rest,
                    recovered=Estimate.ratio(ablated - runs.losses(its), gap),
                    agreement=agreement,
                    same_answer=same,
                )
            )
    return tuple(found)


class Runs:
    """Runs a model on examples in given states of the search, a few examples at a time."""

    def __init__(self, adapter: Adapter | CallbackModel, examples: Examples) -> None:
        self.adapter, self.examples = adapter, examples.on(adapter.device)
        self.read = self.examples.read_of(adapter.answers_at())
        self.chunks = chunks(adapter, self.examples)

    def outputs(self, asked: Sequence[tuple[State, Rest]]) -> list[Tensor]:
        """For each state, the outputs at the read positions. All rows without a target are ablated
        in the given way (`Rest`).
        """
        found: list[list[Tensor]] = [[] for _ in asked]
        for some in self.chunks:
            prescriber = prescriber_of(self.adapter, self.examples.part(some))
            for outputs, (state, rest) in zip(found, asked, strict=True):
                outputs.append(self._outputs(prescriber, some, state, rest).float().cpu())
        return [torch.cat(outputs) for outputs in found]

    def _outputs(self, prescriber: Prescriber, some: slice, state: State, rest: Rest) -> Tensor:
        """The outputs of some examples."""
        ablation, inputs = state.ablation, self.examples.inputs[some]

        if isinstance(self.adapter, CallbackModel):

            def edit(layer: int, own: Tensor) -> Tensor:
                return prescriber.replaced(ablation.patterns(layer), own)

            return self.adapter.outputs(inputs, edit)[:, -self.read :]

        def attend(layer: int, heads: Heads) -> Brought:
            weights = self._weights(prescriber.of(layer), ablation.patterns(layer), heads)
            brought = weights.to(heads.values.dtype) @ heads.values
            if rest == "even":
                return brought
            instead = self._instead[rest][layer][some if rest == "resample" else slice(None)]
            for head, pattern in ablation.patterns(layer).items():
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

    @property
    def model(self) -> Tensor:
        """The model's own outputs at the read positions."""
        return self._recorded[0]

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
    def _recorded(self) -> tuple[Tensor, list[Brought]]:
        """The model's own outputs, and the outputs of the heads of each layer (empty for a
        CallbackModel).
        """
        if isinstance(self.adapter, CallbackModel):
            return self.outputs([(State(), "even")])[0], []
        outputs, brought = [], []
        for some in self.chunks:
            pass_ = record(self.adapter, self.examples.inputs[some])
            outputs.append(self.adapter.unembed(pass_.streams[-1][:, -self.read :]).float().cpu())
            brought.append(pass_.brought)
        return torch.cat(outputs), [torch.cat(layer) for layer in zip(*brought, strict=True)]

    def losses(self, outputs: Tensor) -> PerExample:
        """The loss of each example, mean over hops."""
        found: PerExample = self.examples.losses_of(outputs).mean(-1).double().cpu().numpy()
        return found

    def agreement(self, model: Tensor, circuit: Tensor) -> tuple[Estimate | None, Estimate | None]:
        """The agreement of the circuit's outputs with the model's at the answers: R² and None for
        vectors; KL divergence and the share of equal most likely classes for classes.
        """
        model, circuit = (self.examples.answers_of(each).double() for each in (model, circuit))
        if not self.examples.classes:
            spread = (model - model.mean(0)).square().flatten(1).sum(1).numpy()
            off = (model - circuit).square().flatten(1).sum(1).numpy()
            lost = Estimate.ratio(off, spread)
            if lost is None:
                return None, None
            return Estimate(mean=1 - lost.mean, low=1 - lost.high, high=1 - lost.low), None
        # A model may answer several hops at one position, each with classes of its own.
        model, circuit = (
            each.unflatten(-1, (self.examples.abreast, -1)) for each in (model, circuit)
        )
        logs, others = model.log_softmax(-1), circuit.log_softmax(-1)
        divergence = (logs.exp() * (logs - others)).sum(-1).flatten(1).mean(1).numpy()
        same = (model.argmax(-1) == circuit.argmax(-1)).double().flatten(1).mean(1).numpy()
        return Estimate.of(divergence), Estimate.of_shares(same)
