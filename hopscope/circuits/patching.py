"""Patching on minimal pairs: what a site moves or routes, measured by how answers change.

1. In the *counterfactual*, two chains exchange one symbol at all its positions. All else is equal.
2. At one site (a head's output at a role, or the part of it that comes from one role), the
   activation of the own example is replaced by that of the counterfactual.
3. The result is how far each answer moves from its own chain's symbol (0) to the other chain's (1),
   relative to symbols of third chains. An answer that is merely lost does not move.

After a site, the pass continues in up to four ways. They are rows of one batch, and differ in how
attention is computed:

    all      from the patched stream, as the model does
    values   fixed to that of the own example: what reaches the answer was moved by values
    queries  from an unpatched stream, except that queries see what `values` adds to the stream
    keys     from an unpatched stream, except that keys see what `values` adds to the stream
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hopscope.circuits import budget
from hopscope.circuits.ablator import check_head
from hopscope.circuits.account import WAYS, Effect, Patched, Site, Way
from hopscope.circuits.adapters import AnyModel, replaceable
from hopscope.circuits.components import Estimate
from hopscope.circuits.engine import (
    Adapter,
    Brought,
    Heads,
    Recorded,
    Weights,
    check_finite,
    forward,
    record,
)
from hopscope.circuits.examples import (
    Examples,
    Questions,
    check_interval,
    example_seed,
    examples_of,
)
from hopscope.circuits.progress import counted
from hopscope.circuits.slices import output_bytes
from hopscope.configs import FactTask, Task
from hopscope.errors import CircuitError, NotLearned
from hopscope.facts import Role
from hopscope.tasks import Batch, askers, dataset, partners, question_losses, symbols

LossFunction = Callable[[Tensor], Float[Tensor, "batch hop"]]
"""A function from outputs [batch, position, width] at the last positions, those that are read, to
the loss of each example and hop."""


@dataclass(frozen=True)
class Pairs:
    """Examples, and for each symbol their counterfactuals."""

    examples: Examples
    other: LossFunction
    """The loss of each answer with the other chain's symbol as the target."""
    third: LossFunction
    """The loss of each answer with a symbol of a third chain as the target: the loss of an answer
    that is merely lost. Both chains of a pair have the same third chains."""
    counterfactuals: dict[str, Tensor]
    """For each symbol, the inputs of the same examples with that symbol exchanged."""
    hops: tuple[int, ...]
    """The number of the hop, from 1, of each answer."""

    def nearness(self, outputs: Tensor) -> Float[Tensor, "mark variant batch hop"]:
        """How much nearer the answers are to the other chain's symbols (first mark), and to their
        own chain's symbols (second mark), than to those of third chains.
        """
        own, other, third = (
            torch.stack([losses(each) for each in outputs])
            for losses in (self.examples.losses_of, self.other, self.third)
        )
        for name, losses in (("other", other), ("third", third)):
            if losses.shape != own.shape:
                raise CircuitError(
                    f"the losses of `{name}` are {list(losses.shape[1:])}, the examples' own "
                    f"{list(own.shape[1:])}: expected the same, one for each example and hop"
                )
        return torch.stack((third - other, third - own)).double()


def paired(questions: Questions) -> Task:
    """The task, if its examples can be paired; else raises CircuitError."""
    if not isinstance(questions, FactTask):
        raise CircuitError(
            "this task draws no minimal pairs, as hopscope's tasks over facts do (Retrieval, "
            "Induction, …); hopscope.circuits.patch takes Pairs of your own"
        )
    task: Task = questions
    if why := task.swap_obstacle():
        raise CircuitError(f"examples of {task.kind} cannot be paired: {why}")
    return task


def pairs_of(questions: Questions, count: int, seed: int = 0) -> Pairs:
    """Draw minimal pairs of a task; raises CircuitError if its examples cannot be paired."""
    check_interval(count)
    task = paired(questions)
    examples = examples_of(task, count, seed, "patching")
    number = example_seed("patching", seed)
    counterfactuals = {
        name: dataset(task, number, count, "validation", swapped=(name,)).inputs
        for name in task.symbol_names()
    }
    batch = dataset(task, number, count, "validation")
    other, thirds = _rivals(task, count, number)

    def losses(answers: Tensor, outputs: Tensor) -> Tensor:
        asked = Batch(batch.inputs, answers, batch.roles)
        return question_losses(task, outputs.to(answers.device), asked)

    return Pairs(
        examples=examples,
        other=partial(losses, other),
        third=lambda outputs: torch.stack([losses(each, outputs) for each in thirds]).mean(0),
        counterfactuals=counterfactuals,
        hops=task.asked_hops(),
    )


def _rivals(task: Task, examples: int, seed: int) -> tuple[Tensor, list[Tensor]]:
    """For every answer, the answer of the other chain, and the answers of third chains.

    With only two chains there is no third one, so the chains of another example are used. A chain
    without a partner gets its own answers everywhere, so that it has no effect.
    """
    known = symbols(task, seed, examples, "validation")
    asker = askers(task, seed, examples, "validation")
    names, facts = task.symbol_names(), task.graph().facts
    columns = [names.index(facts[hop - 1].value) for hop in task.asked_hops()]
    example = torch.arange(examples)[:, None]

    def of(chain: Int[Tensor, "batch answer"], shift: int = 0) -> Tensor:
        answers: Tensor = known[example - shift, chain][:, :, columns]
        return answers

    chains = known.shape[1]
    partner = partners(chains)
    if chains == 2:
        return of(partner[asker]), [of(asker, 1), of(partner[asker], 1)]
    thirds = torch.tensor([
        [chain] * (chains - 2) if chain == mate
        else [third for third in range(chains) if third not in (chain, mate)]
        for chain, mate in enumerate(partner.tolist())
    ])  # fmt: skip
    return of(partner[asker]), [of(third[asker]) for third in thirds.T]


EXAMPLES = 64
"""The default number of minimal pairs."""
SURE = 0.3
"""A model has answers of its own if the summed differences between nearness to the own chain's
symbols and to another's exceed this share of the summed absolute differences (0 at chance)."""
STILL = 1e-6
"""A change smaller than this share of the activation is a rounding error."""

AnswerScores = Float[Tensor, "batch hop"]


@torch.no_grad()
def patch(
    model: AnyModel,
    task: Questions | Pairs,
    sites: Sequence[Site],
    examples: int = EXAMPLES,
    seed: int = 0,
) -> tuple[Patched, ...]:
    """Patch each site with every symbol's counterfactual: its effects on the answers, in each way.

    Raises NotLearned if no answer is nearer to its own chain than to others.
    """
    adapter = replaceable(model)
    pairs = task if isinstance(task, Pairs) else pairs_of(task, examples, seed)
    _check_pairs(pairs)
    for site in sites:
        check_site(adapter, pairs.examples, site)
    variants = [(number, name) for number in range(len(sites)) for name in pairs.counterfactuals]
    sure, moved = patched(adapter, pairs, sites, variants)
    if sure.shape[-1] != len(pairs.hops):
        raise CircuitError(
            f"hops is {pairs.hops}, and `other` and `third` gave losses of {sure.shape[-1]} "
            "answers: expected a hop for each"
        )
    check_answers(sure)
    effects: list[list[Effect]] = [[] for _ in sites]
    for variant, (site_number, symbol) in enumerate(variants):
        for number, way in enumerate(WAYS):
            for column, hop in enumerate(pairs.hops):
                to_other, to_own = moved[:, number, variant, :, column]
                share, left = (share_of(sure[:, column], its) for its in (to_other, -to_own))
                if share and left:
                    effects[site_number].append(
                        Effect(symbol=symbol, way=way, hop=hop, share=share, left=left)
                    )
    return tuple(
        Patched(site=site, moves=tuple(effect for effect in its if effect.kept))
        for site, its in zip(sites, effects, strict=True)
    )


def _check_pairs(pairs: Pairs) -> None:
    """Raise CircuitError for a single pair, or counterfactuals of other examples."""
    check_interval(len(pairs.examples))
    shape = tuple(pairs.examples.inputs.shape)
    if not pairs.counterfactuals:
        raise CircuitError("counterfactuals is empty; expected the inputs for at least one symbol")
    for name, inputs in pairs.counterfactuals.items():
        if tuple(inputs.shape) != shape:
            raise CircuitError(
                f"the counterfactual of {name} is {tuple(inputs.shape)}; the examples are {shape}: "
                "expected each example once, in the same order"
            )
        check_finite(inputs, f"the counterfactual of {name}")


def patched(
    adapter: Adapter, pairs: Pairs, sites: Sequence[Site], variants: Sequence[tuple[int, str]]
) -> tuple[AnswerScores, Float[Tensor, "mark way variant batch hop"]]:
    """How much nearer each answer is to its own chain's symbol than to the other chain's; and how
    far each variant (the number of a site, and a symbol) moves the answers, in each way. Computed a
    few examples at a time.
    """
    chunks = chunks_of(adapter, pairs.examples, len(variants) * len(WAYS))
    parts = [
        Patching(adapter, pairs, sites, some).moved(variants, WAYS)
        for some in counted("patching", chunks)
    ]
    sure, moved = zip(*parts, strict=True)
    return torch.cat(sure), torch.cat(moved, 3)


def check_site(adapter: Adapter, examples: Examples, site: Site) -> None:
    """Raise CircuitError if the site names a head, role or relation that does not exist."""
    if not site.heads or not site.destinations:
        raise CircuitError(f"the site {site} names no {'destination' if site.heads else 'head'}")
    if site.chain == "others" and site.source is None and not site.relation:
        raise CircuitError(f"the site {site} comes from everywhere; expected the source role")
    for head in site.heads:
        check_head(adapter, (site.layer, head))
    for role in (*site.destinations, *([site.source] if site.source else [])):
        examples.number(role)
    if site.relation:
        examples.leads(site.relation, site.times)
        if site.source is not None or site.chain == "others":
            raise CircuitError(
                f"the site {site} comes along a relation; expected no source and no other chain "
                "beside it"
            )


def chunks_of(adapter: Adapter, examples: Examples, streams: int) -> list[slice]:
    """Slices of the examples for which `streams` residual streams fit in memory."""
    one = adapter.embed(examples.inputs[:1].to(adapter.device)).nbytes
    each = (streams + budget.WIDTHS * adapter.layers) * one
    size = max(1, 2 * budget.call_bytes(adapter.device) // each)
    return [slice(at, min(at + size, len(examples))) for at in range(0, len(examples), size)]


class Patching:
    """Patches sites in some examples of the pairs, from the recorded pass over these examples."""

    def __init__(self, adapter: Adapter, pairs: Pairs, sites: Sequence[Site], some: slice) -> None:
        self.adapter, self.pairs, self.sites, self.some = adapter, pairs, sites, some
        roles, device = pairs.examples.roles, adapter.device
        self.role, chain = roles.role[some].to(device), roles.chain[some].to(device)
        self.same = chain[:, :, None] == chain[:, None, :]
        self.own = record(adapter, pairs.examples.inputs[some])
        self.read = pairs.examples.read_of(adapter.answers_at())

    def counterfactuals(self) -> dict[str, Recorded]:
        """The recorded pass over the counterfactual of each symbol."""
        every = self.pairs.counterfactuals
        return {name: record(self.adapter, inputs[self.some]) for name, inputs in every.items()}

    def moved(
        self, variants: Sequence[tuple[int, str]], ways: Sequence[Way]
    ) -> tuple[AnswerScores, Float[Tensor, "mark way variant batch hop"]]:
        """How much nearer each answer is to its own chain's symbol than to the other chain's; and
        how far each variant (the number of a site, and a symbol) moves the answers.
        """
        others = self.counterfactuals()
        by_layer: dict[int, dict[int, Tensor]] = {}
        for number, (at, name) in enumerate(variants):
            change = self.change(self.sites[at], others[name])
            if change is not None:
                by_layer.setdefault(self.sites[at].layer, {})[number] = change
        del others
        plain = self.nearness(self.own.streams[-1][None])
        sure = plain[1, 0] - plain[0, 0]
        found = sure.new_zeros(2, len(ways), len(variants), *sure.shape)
        for layer, changes in by_layer.items():
            heads = [self.sites[variants[number][0]].heads for number in changes]
            patched = self._patched(layer, heads, list(changes.values()))
            for way, end in enumerate(self._ends(layer + 1, patched, ways)):
                found[:, way, list(changes)] = self.nearness(end) - plain
        return sure, found

    def change(self, site: Site, other: Recorded) -> Float[Tensor, "batch some seq d_head"] | None:
        """The site's activation in the counterfactual minus that in the own example; None if they
        are the same.
        """
        here, there = (self._brought(site, its) for its in (self.own, other))
        destinations = self._at(*site.destinations)[:, None, :, None]
        change = torch.where(destinations, there - here, 0.0)
        size = torch.where(destinations, here, 0.0).square().sum()
        return change if change.square().sum() > STILL**2 * size else None

    def _brought(self, site: Site, its: Recorded) -> Float[Tensor, "batch some seq d_head"]:
        heads = list(site.heads)
        weights = its.weights[site.layer][:, heads]
        if site.source is not None or site.relation:
            weights = weights * self._sources(site)[:, None]
        brought: Tensor = weights @ its.values[site.layer][:, heads]
        return brought

    def _sources(self, site: Site) -> Bool[Tensor, "batch seq seq"]:
        """True at the source positions of a site, for every destination."""
        if site.source is not None:
            same = self.same if site.chain == "own" else ~self.same
            return same & self._at(site.source)[:, None, :]
        leads = self.pairs.examples.masks(site.relation, site.times, self.some)
        return leads.to(self.role.device)

    def _at(self, *roles: Role) -> Bool[Tensor, "batch seq"]:
        """True at the positions of these roles."""
        return self.pairs.examples.positions(*roles)[self.some].to(self.role.device)

    def _patched(
        self, layer: int, heads: Sequence[tuple[int, ...]], changes: Sequence[Tensor]
    ) -> Float[Tensor, "variant batch seq d_model"]:
        """The streams after a layer, one for each change to the outputs of some heads."""
        x = self.own.streams[layer]
        brought = self.own.brought[layer].repeat(len(heads), 1, 1, 1)
        every = brought.unflatten(0, (len(heads), len(x)))
        for number, (some, change) in enumerate(zip(heads, changes, strict=True)):
            every[number, :, list(some)] += change
        out: Tensor = self.adapter.finish(layer, x.repeat(len(heads), 1, 1), brought)
        apart: Tensor = out.unflatten(0, (len(heads), len(x)))
        return apart

    def _ends(
        self, start: int, patched: Float[Tensor, "variant batch seq d_model"], ways: Sequence[Way]
    ) -> Float[Tensor, "way variant batch seq d_model"]:
        """The streams after the last layer in each way, from the patched streams before layer
        `start`.
        """
        count, size = len(patched), patched.shape[0] * patched.shape[1]
        rows_of = {way: slice(n * size, (n + 1) * size) for n, way in enumerate(ways)}

        def attend(layer: int, heads: Heads) -> Brought:
            def weights(way: Way) -> Weights:
                if way == "values":
                    return self.own.weights[layer].repeat(count, 1, 1, 1)
                own = heads.rows(rows_of[way])
                if way == "all":
                    return own.weights()
                moved = heads.stream[rows_of["values"]]
                added = moved - self.own.streams[layer].repeat(count, 1, 1)
                seeing = self.adapter.project(layer, own.stream + added)
                asking, offering = (seeing, own) if way == "queries" else (own, seeing)
                return asking.weights(keys=offering)

            values = heads.values.chunk(len(ways))
            return torch.cat([weights(way) @ its for way, its in zip(ways, values, strict=True)])

        after, before = patched.flatten(0, 1), self.own.streams[start].repeat(count, 1, 1)
        rows = torch.cat([after if way in ("all", "values") else before for way in ways])
        end = forward(self.adapter, rows, attend, start)
        apart: Tensor = end.unflatten(0, (len(ways), count, -1))
        return apart

    def nearness(
        self, x: Float[Tensor, "variant batch seq d_model"]
    ) -> Float[Tensor, "mark variant batch hop"]:
        """Where the answers stand; losses know all examples, so those not here answer zeros."""
        found = []
        for part in x[:, :, -self.read :].split(self.together):
            outputs = self.adapter.unembed(part.flatten(0, 1)).unflatten(0, part.shape[:2])
            every = outputs.new_zeros(len(part), len(self.pairs.examples), *outputs.shape[2:])
            every[:, self.some] = outputs
            found.append(self.pairs.nearness(every.cpu())[:, :, self.some])
        return torch.cat(found, 1)

    @cached_property
    def together(self) -> int:
        """Variants whose outputs for all examples one call may hold."""
        examples = self.pairs.examples
        one = output_bytes(self.adapter, examples) * len(examples)
        return max(1, budget.call_bytes(self.adapter.device) // one)


def has_answers(sure: Float[Tensor, "batch *hop"]) -> Bool[Tensor, "*hop"]:
    """True for hops that the model answers: nearer to the own chain's symbols than to another's."""
    return sure.sum(0) > SURE * sure.abs().sum(0)


def check_answers(sure: AnswerScores) -> None:
    """Raise NotLearned if answers are no nearer to their own chain's symbols than to another's."""
    if not has_answers(sure.flatten()):
        raise NotLearned(
            "this model's answers are no nearer to its own chain's symbols than to another's, so "
            "that no way from one to the other can be measured; train it further"
        )


def share_of(sure: Float[Tensor, "batch"], moved: Float[Tensor, "batch"]) -> Estimate | None:
    """How far the answers move from their own symbol (0) to the other chain's (1), with its
    interval; None for a hop that the model does not answer, or not surely with these examples.
    """
    return Estimate.ratio(moved.numpy(), sure.numpy()) if has_answers(sure) else None
