"""Linear probes: which symbols are decodable in the residual stream, and in each head's output.

1. Draw examples to fit on and others to score on, and run the model on both, layer by layer.
2. At every place (the stream after a layer, or one head's output) and role, fit linear maps to the
   symbols of the position's own chain, of another chain and of another example, all at once.
3. Score the maps on the other examples.

Vectors are decoded by ridge regression in closed form. All targets of one place and role share a
Gram matrix, whose eigenvectors are computed once. Each target gets the penalty with the best
generalised cross-validation score (Golub, Heath & Wahba 1979) on the fitting examples. Tokens are
decoded by Fisher's linear discriminants, in the space of the ridge regression's outputs; these
equal the discriminants of the inputs themselves (Hastie, Tibshirani & Buja 1994).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope import intervals
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.adapters import AnyModel, CallbackModel, adapter_of
from hopscope.circuits.attention import attended, chunks
from hopscope.circuits.budget import DOUBLE, call_bytes, check_maps, check_streams
from hopscope.circuits.engine import (
    Adapter,
    Additive,
    Brought,
    Heads,
    as_model,
    check_finite,
    streams,
)
from hopscope.circuits.examples import (
    Examples,
    Purpose,
    Questions,
    check_interval,
    example_seed,
    examples_of,
)
from hopscope.circuits.pattern import Source
from hopscope.circuits.probe import Decodability, Probe, ProbeHistory
from hopscope.circuits.progress import Progress
from hopscope.circuits.scores import Runs
from hopscope.circuits.tracking import History, checkpoints_of, model_of
from hopscope.configs import FactTask
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.milestones import HALF
from hopscope.tasks import symbols as drawn_symbols

EXAMPLES = 1024
"""The default number of examples for fitting; half as many others are used for scoring."""
HISTORY_EXAMPLES = 256
"""The default number of examples for fitting at each checkpoint: 1,024 would take long."""
FEWEST = 2
"""The least number of positions to fit on, per dimension of the residual stream."""
PENALTIES = tuple(10.0**power for power in range(-7, 3))
"""The candidate ridge penalties, in units of the mean square of an input."""
TINY = 1e-9
"""A variance below this counts as zero."""

Targets = Float[Tensor, "row kind symbol size"] | Int[Tensor, "row kind symbol"]
"""The symbols of the own chain, of another example, and (if there is one) of another chain, as
vectors or as class numbers."""


@torch.no_grad()
def probe(
    model: AnyModel,
    task: Questions,
    examples: int = EXAMPLES,
    seed: int = 0,
    *,
    heads: bool = True,
) -> Probe:
    """Probe a model: which symbols are decodable at each role after every layer, and in the output
    of each head (unless `heads` is False).

    Maps are fitted on `examples` examples, and scored on half as many others. For a user's task
    with tokens as inputs and no named symbols, the symbols are the token at each position
    (`itself`) and the tokens to which the task's relations lead (`hop`, `hop ×2`).
    """
    adapter = adapter_of(model)
    fitted, scored, names = _samples(task, examples, seed)
    drawn, cells = scored.examples, (len(scored.examples.table), len(names))
    of_stream = np.full((4, adapter.layers + 1, *cells), np.nan)
    of_heads = np.full((4, adapter.layers, adapter.heads, *cells), np.nan)
    fit_rows, score_rows = fitted.rows(names), scored.rows(names)
    _check_known(fit_rows, score_rows, drawn, names)
    places = (_places(adapter, each, heads) for each in (fitted.examples, drawn))
    progress, every = Progress("probing"), 1 + adapter.layers * (1 + heads * adapter.heads)
    for done, ((layer, head, x), (_, _, fresh)) in enumerate(zip(*places, strict=True)):
        progress.at(done, every)
        for stream in (x, fresh):
            check_finite(stream, f"the residual stream after layer {layer}")
        into = of_stream[:, layer] if head is None else of_heads[:, layer - 1, head]
        for role, rows in fit_rows.items():
            _check_enough(rows, x.shape[-1], drawn.table[role], examples)
            if role in score_rows:
                into[:, role] = _cell(x, fresh, rows, score_rows[role])
    (measured,) = Runs(adapter, drawn).measured()
    return Probe(
        model=adapter.digest(),
        task=task if isinstance(task, FactTask) else None,
        measure="R²" if scored.symbols.is_floating_point() else "accuracy",
        roles=drawn.table,
        symbols=tuple(names),
        stream=_decodability(of_stream),
        heads=_decodability(of_heads) if heads and isinstance(adapter, Additive) else None,
        fitted=examples,
        examples=len(drawn),
        seed=seed,
        loss=float(measured.losses.mean()),
        chance=drawn.chance,
    )


def _decodability(parts: np.ndarray) -> Decodability:
    return Decodability(**dict(zip(Decodability.model_fields, parts, strict=True)))


def probe_history(
    history: History,
    task: Questions,
    member: int | None = None,
    examples: int = HISTORY_EXAMPLES,
    seed: int = 0,
) -> ProbeHistory:
    """Probe the model at every checkpoint of a run; `member` selects a model of a fleet."""
    steps, found = checkpoints_of(history), []
    for step in steps:
        try:
            model = model_of(history, step, member)
            found.append(probe(model, task, examples, seed, heads=False))
        except CircuitError as error:
            raise CircuitError(f"at step {step}: {error}") from error
    return ProbeHistory(
        roles=found[0].roles,
        symbols=found[0].symbols,
        steps=tuple(steps),
        own=np.stack([each.stream.own for each in found]),
        losses=tuple(each.loss for each in found),
        chance=found[0].chance,
    )


class Reader:
    """Decodes symbols from the residual streams of a model with heads changed. The maps are fitted
    once, on the unchanged model, so that they measure what later layers could still use without
    being changed. Without changes the results are those of `probe`.
    """

    @torch.no_grad()
    def __init__(
        self, model: AnyModel, task: Questions, examples: int = EXAMPLES, seed: int = 0
    ) -> None:
        adapter = adapter_of(model)
        assert not isinstance(adapter, CallbackModel)
        fitted, scored, names = _samples(task, examples, seed)
        self.adapter, self.examples, self.symbols = adapter, scored.examples, tuple(names)
        self._rows = {role: rows.own for role, rows in fitted.rows(names).items()}
        self._fresh = {role: rows.own for role, rows in scored.rows(names).items()}
        _check_known(self._rows, self._fresh, self.examples, names)
        width = adapter.embed(fitted.examples.inputs[:1].to(adapter.device)).shape[-1]
        for role, rows in self._rows.items():
            _check_enough(rows, width, self.examples.table[role], examples)
        self._places = _places(adapter, fitted.examples, heads=False)
        self._fits: dict[tuple[int, int], Fit] = {}

    @torch.no_grad()
    def own(
        self,
        ablation: Ablation,
        examples: Examples | None = None,
        ask: Callable[[], None] = lambda: None,
    ) -> Float[np.ndarray, "layer role symbol"]:
        """How decodable each symbol of the own chain is at each role, after 0, 1, … layers.
        `examples` are the reader's examples, with the tables that the ablation needs. `ask` is
        called before each layer; an exception that it raises ends the computation, but maps that
        are fitted already are kept.
        """
        self._fit(ask)
        drawn = self.examples if examples is None else examples
        shape = (self.adapter.layers + 1, len(drawn.table), len(self.symbols))
        found: np.ndarray = np.full(shape, np.nan)
        streams = attended(self.adapter, drawn, ablation, ask).streams
        seen = [self.adapter.normed(x).cpu() for x in streams]
        for (layer, role), fit in self._fits.items():
            found[layer, role] = _read(fit, seen[layer], self._fresh[role])[0]
        return found

    def _fit(self, ask: Callable[[], None]) -> None:
        """Fit the maps that are not fitted yet, layer by layer."""
        while True:
            ask()
            place = next(self._places, None)
            if place is None:
                return
            layer, _, x = place
            for role in self._rows.keys() & self._fresh.keys():
                self._fits[layer, role] = _fitted(x, self._rows[role])


class RolePositions(NamedTuple):
    """The positions of one role in all examples, and the targets of maps there."""

    example: Int[Tensor, "row"]
    position: Int[Tensor, "row"]
    targets: Targets

    @property
    def own(self) -> "RolePositions":
        """The same positions, with only the symbols of the own chain as targets."""
        return self._replace(targets=self.targets[:, :1])


@dataclass(frozen=True)
class Sample:
    """Examples, and the symbols for which their positions are probed."""

    examples: Examples
    symbols: Tensor
    """The symbols of every chain [batch, chain, symbol, …], as vectors or class numbers."""
    names: tuple[str, ...]
    chain: Int[Tensor, "batch seq"]
    """The chain whose symbols each position is probed for."""
    others: bool = False
    """True if an example has other chains."""

    def rows(self, names: list[str]) -> dict[int, RolePositions]:
        """The positions of every role that occurs, by the role's index."""
        symbols = self.symbols[:, :, [self.names.index(name) for name in names]]
        role, chains, found = self.examples.roles.role, symbols.shape[1], {}
        for number in range(len(self.examples.table)):
            example, position = ((role == number) & (self.chain < chains)).nonzero(as_tuple=True)
            mine = self.chain[example, position].long()
            targets = [symbols[example, mine], symbols[example - 1, mine]]
            if self.others:
                targets.append(symbols[example, (mine + 1) % chains])
            if len(example):
                found[number] = RolePositions(example, position, torch.stack(targets, 1))
        return found


def _samples(task: Questions, examples: int, seed: int) -> tuple[Sample, Sample, list[str]]:
    """The sample for fitting, the sample for scoring, and the names of symbols in both."""
    check_interval(examples)
    fitted = _sample(task, examples, seed, "fitting")
    scored = _sample(task, max(2, examples // 2), seed, "probing")
    return fitted, scored, [name for name in fitted.names if name in scored.names]


def probed_symbols(task: Questions, examples: int = EXAMPLES, classes: int = 2**31) -> list[str]:
    """The names of the symbols for which a task is probed; empty if they are not known, or if there
    are more than `classes` classes.
    """
    try:
        fitted, _, names = _samples(task, examples, 0)
    except CircuitError:
        return []
    few = fitted.symbols.is_floating_point() or int(fitted.symbols.max()) < classes
    return names if few else []


def _sample(questions: Questions, count: int, seed: int, purpose: Purpose) -> Sample:
    """Draw examples with their symbols; raises CircuitError if the symbols are not known."""
    examples = examples_of(questions, count, seed, purpose)
    symbols, names = examples.symbols, examples.names
    if isinstance(questions, FactTask) and (names := questions.symbol_names()):
        number = example_seed(purpose, seed)
        symbols = drawn_symbols(questions, number, count, "validation")
    if symbols is None or not names:
        return _along_relations(examples)
    return Sample(examples, symbols, names, examples.roles.chain, others=symbols.shape[1] > 1)


def _along_relations(examples: Examples) -> Sample:
    """A sample whose symbols are the token at every position, and the tokens to which relations
    lead from it (class 0: nowhere). Each position is a chain of its own.
    """
    inputs = examples.inputs
    follows = [each for each in examples.follows() if examples.relations[each[0]].dim() == 2]
    if inputs.dim() != 2 or inputs.is_floating_point():
        raise CircuitError(
            "inputs are not tokens [batch, seq], so the symbols must be given: pass a function "
            "that draws Examples with symbols [batch, chain, symbol, …] and names"
        )
    padded = torch.nn.functional.pad(inputs.long() + 1, (1, 0))
    led = [padded.gather(1, examples.landing(name, times) + 1) for name, times in follows]
    names = ["itself", *(str(Source("relation", None, name, times)) for name, times in follows)]
    position = torch.arange(examples.length).expand(inputs.shape)
    return Sample(examples, torch.stack([padded[:, 1:], *led], -1), tuple(names), position)


def _places(
    adapter: Adapter | CallbackModel, examples: Examples, heads: bool
) -> Iterator[tuple[int, int | None, Float[Tensor, "batch seq width"]]]:
    """For each place: the layer (0: the embedding), the head, and the head's output in all
    examples; for head None, the normalised stream after the layer. All parts of the examples are
    run through a layer before the next layer.
    """
    inputs = [examples.inputs[some].to(adapter.device) for some in chunks(adapter, examples)]
    if isinstance(adapter, CallbackModel):
        walks: list[Iterable[Tensor]] = [_handed_out(adapter, part) for part in inputs]
    else:
        check_streams(*examples.shape, adapter.embed(inputs[0][:1]).shape[-1])
        outputs: list[Brought] = [torch.empty(0)] * len(inputs)

        def walk(number: int) -> Iterable[Tensor]:
            def attend(layer: int, its: Heads) -> Brought:
                outputs[number] = as_model(layer, its)
                return outputs[number]

            x = adapter.embed(inputs[number])
            return chain([x], streams(adapter, x, attend))

        walks = [walk(number) for number in range(len(inputs))]
    for layer, parts in enumerate(zip(*walks, strict=True)):
        if layer and heads and isinstance(adapter, Additive):
            for head, coordinates in enumerate(_coordinates(adapter, layer - 1, outputs[0])):
                yield layer, head, torch.cat([(z[:, head] @ coordinates).cpu() for z in outputs])
        yield layer, None, torch.cat([adapter.normed(x).cpu() for x in parts])


def _coordinates(
    adapter: Additive, layer: int, output: Brought
) -> list[Float[Tensor, "d_head d_head"]]:
    """For each head, a map from its output to coordinates of what the output adds to the stream.
    Distances stay the same, with d_head coordinates instead of d_model.
    """
    heads, width = output.shape[1], output.shape[-1]
    # The basis vectors are rows of the batch: a model may not have so many positions.
    nothing = output.new_zeros(width, heads, 1, width)
    base = adapter.added(layer, nothing[:1])[0]
    found = []
    for head in range(heads):
        each = nothing.clone()
        each[:, head, 0] = torch.eye(width, device=output.device, dtype=output.dtype)
        added = (adapter.added(layer, each)[:, 0] - base).float()
        left, sizes, _ = torch.linalg.svd(added, full_matrices=False)
        found.append((left * sizes).to(output.dtype))
    return found


def _handed_out(adapter: CallbackModel, inputs: Tensor) -> Sequence[Tensor]:
    """The residual streams of a CallbackModel; raises CircuitError if it has no `streams`."""
    if adapter.streams is None:
        raise CircuitError(
            "this CallbackModel has no residual streams: give CallbackModel a function "
            "`streams` from inputs to the stream before the first layer and after each"
        )
    found = list(adapter.streams(inputs))
    if len(found) != adapter.layers + 1:
        raise CircuitError(
            f"streams gave {len(found)} residual streams; expected {adapter.layers + 1}: before "
            "the first layer, and after each"
        )
    return found


def _check_enough(rows: RolePositions, width: int, role: Role, examples: int) -> None:
    """Raise CircuitError if there are too few positions to fit a map."""
    count = len(rows.example)
    if count < FEWEST * width:
        enough = -(-FEWEST * width * examples * 5 // (count * 4))  # 25 % more: roles are random
        raise CircuitError(
            f"{role} has only {count} positions in {examples} examples, too few for a map from "
            f"{width} numbers: take {enough:,} examples (`--examples {enough}`)"
        )
    if not rows.targets.is_floating_point():
        check_maps(width, rows.targets[0].numel(), int(rows.targets.max()) + 1)


def _check_known(
    fitted: Mapping[int, RolePositions],
    scored: Mapping[int, RolePositions],
    drawn: Examples,
    names: Sequence[str],
) -> None:
    """Raise CircuitError if most tokens that are scored at a role do not occur among those that are
    fitted there: no map can name them, so they would count as not decodable whatever the stream.
    """
    for role in fitted.keys() & scored.keys():
        known, asked = (rows[role].targets[:, 0] for rows in (fitted, scored))
        if known.is_floating_point():
            return
        for number, name in enumerate(names):
            tokens = asked[:, number].unique()
            share = float(torch.isin(tokens, known[:, number]).float().mean())
            if share <= HALF:
                raise CircuitError(
                    f"of {len(tokens):,} tokens scored at {drawn.table[role]} ({name}), "
                    f"{share:.0%} are among the fitted ones, and no map can name the rest: take "
                    "more examples (`--examples`), or fewer tokens"
                )


def _cell(
    x: Tensor, fresh: Tensor, fitted: RolePositions, scored: RolePositions
) -> Float[np.ndarray, "4 symbol"]:
    """The four values of `Decodability` (own, half, other_chain, other_example) of each symbol:
    maps are fitted on `x` and scored on `fresh`.
    """
    kinds = fitted.targets.shape[1]
    share, half = (its.reshape(kinds, -1) for its in _read(_fitted(x, fitted), fresh, scored))
    other_chain = share[2] if kinds > 2 else np.full_like(share[0], np.nan)
    return np.stack([share[0], half[0], other_chain, share[1]])


def _fitted(x: Tensor, rows: RolePositions) -> "Fit":
    """The maps from streams [batch, seq, width] to the targets of these rows."""
    solve = ridge if rows.targets.is_floating_point() else discriminants
    return solve(x[rows.example, rows.position], rows.targets.flatten(1, 2))


def _read(
    fit: "Fit", fresh: Tensor, scored: RolePositions
) -> tuple[Float[np.ndarray, "target"], Float[np.ndarray, "target"]]:
    """The decodability of every target on these rows, and half its 95 % interval."""
    y, tokens = scored.targets.flatten(1, 2), not scored.targets.is_floating_point()
    score = _hits if tokens else _errors
    part, whole = score(fit, fresh[scored.example, scored.position], y)
    sums = torch.zeros(2, len(fresh), y.shape[1], dtype=torch.float64)
    sums.index_add_(1, scored.example, torch.stack((part, whole)))
    # Positions of one example are not independent, so the interval is over examples.
    ratio, half = intervals.ratio(sums[0].numpy(), sums[1].clamp_min(TINY).numpy())
    if tokens:
        # Always the same class is right for one of the classes that are scored.
        classes = np.array([len(each.unique()) for each in y.T])
        chance = 1 / np.maximum(classes, 2)
        return np.where(classes > 1, (ratio - chance) / (1 - chance), 0.0), half / (1 - chance)
    varies = whole.sum(0).numpy() > TINY
    return np.where(varies, 1 - ratio, 0.0), np.where(varies, half, 0.0)


def _errors(
    fit: "Fit", x: Float[Tensor, "row width"], y: Float[Tensor, "row target size"]
) -> tuple[Tensor, Tensor]:
    """The squared error of the map, and of predicting the mean, both [row, target]."""
    y = y.double()
    return (fit(x) - y).square().sum(-1), (y - fit.middle).square().sum(-1)


def _hits(
    fit: "Fit", x: Float[Tensor, "row width"], y: Int[Tensor, "row target"]
) -> tuple[Tensor, Tensor]:
    """The weight of each row if the map predicts its class, else 0; and the weight itself (the
    total is the same for every class). Both are [row, target].
    """
    weight = torch.stack([1 / each.bincount()[each].double() for each in y.T], 1)
    rows = max(1, call_bytes(x.device) // (DOUBLE * fit.middle.numel()))
    likely = torch.cat([fit(some).argmax(-1) for some in x.split(rows)])
    return weight * (likely == y), weight


@dataclass(frozen=True)
class Fit:
    """For every target a map x ↦ (x - mean) @ weight + middle."""

    mean: Float[Tensor, "width"]
    weight: Float[Tensor, "width target size"]
    middle: Float[Tensor, "target size"]

    def __call__(self, x: Float[Tensor, "row width"]) -> Float[Tensor, "row target size"]:
        flat = (x.double() - self.mean) @ self.weight.flatten(1)
        return flat.view(-1, *self.middle.shape) + self.middle


def ridge(x: Float[Tensor, "row width"], y: Float[Tensor, "row target size"]) -> Fit:
    """Fit maps to vectors by ridge regression."""
    x, y = x.double(), y.double()
    mean, middle = x.mean(0), y.mean(0)
    x, y = x - mean, y - middle
    cross = (x.T @ y.flatten(1)).view(-1, *middle.shape)
    return Fit(mean, _shrunk(x.T @ x, cross, y.square().sum((0, 2)), len(x)), middle)


def _shrunk(
    gram: Float[Tensor, "width width"],
    cross: Float[Tensor, "width target size"],
    square: Float[Tensor, "target"],
    rows: int,
) -> Float[Tensor, "width target size"]:
    """The ridge weights of every target, each with the penalty of the least generalised
    cross-validation score: the error of the fit, divided by the square of the share of degrees of
    freedom that are left.
    """
    values, vectors = torch.linalg.eigh(gram)
    values = values.clamp_min(0)
    turned = torch.einsum("ie,its->ets", vectors, cross)
    penalties = torch.tensor(PENALTIES, dtype=torch.float64) * values.mean().clamp_min(TINY)
    e, p = values[:, None], penalties[None]
    gain = (e + 2 * p) / (e + p).square()
    error = square - torch.einsum("ep,et->pt", gain, turned.square().sum(-1))
    free = 1 - (1 + (e / (e + p)).sum(0)) / rows
    scores = error.clamp_min(0) / free.clamp_min(TINY).square()[:, None]
    best = penalties[scores.argmin(0)]
    return torch.einsum("ie,ets->its", vectors, turned / (values[:, None, None] + best[:, None]))


def discriminants(x: Float[Tensor, "row width"], y: Int[Tensor, "row target"]) -> Fit:
    """Fit linear discriminants, a score for every class of tokens. Classes are assumed equally
    likely, with the same covariance.
    """
    x, rows = x.double(), len(x)
    mean, classes = x.mean(0), int(y.max()) + 1
    x = x - mean
    gram = x.T @ x
    count = torch.stack([each.bincount(minlength=classes) for each in y.T]).double()
    sums = x.new_zeros(x.shape[1], *count.shape)
    for target, each in enumerate(y.T):
        sums[:, target].index_add_(1, each, x.T)
    square = rows - count.square().sum(-1) / rows
    weights = _shrunk(gram, sums, square, rows)
    means = sums / count.clamp_min(1)
    found, middles = [], []
    for target, share in enumerate(count / rows):
        weight, its = weights[:, target], means[:, target]
        within = gram / rows - (share * its) @ its.T
        floor = TINY + 1e-6 * ((gram @ weight) * weight).sum(0).mean() / rows
        # With W = weight and S = within, (WᵀSW + floor)⁻¹ is a class × class matrix. Solving a
        # width × width system is enough: W(WᵀSW + floor)⁻¹Wᵀ = WWᵀ(SWWᵀ + floor)⁻¹.
        outer = weight @ weight.T
        each = outer @ torch.linalg.solve(within @ outer + floor * torch.eye(len(outer)), its)
        found.append(each)
        middles.append(-0.5 * (its * each).sum(0).masked_fill(share == 0, torch.inf))
    return Fit(mean, torch.stack(found, 1), torch.stack(middles))
