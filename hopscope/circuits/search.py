"""The search for a circuit among the attention rows of a model.

An *attention row* is one head's attention from all positions of one role. The search reads the
model's own attention, and tries states of the model (`Ablation`s of all heads) in which rows look
at a target or are ablated:

1. `drafted`: every row with a proposed target looks at it; all others are ablated.
2. `improved`: row by row, another target is taken if it recovers more.
3. `completed`: rows are added until enough is recovered, both with prescribed attention and with
   computed attention: first rows with a proposed target, then tables, then rows as in the model.
4. `simplified`: rows as in the model get a proposed target or a table if enough is still recovered.
5. `lightened`: steps (one role looking at one target in one layer, with any heads) are removed,
   cheapest first, while enough is recovered in both ways.
6. `thinned`: heads that bring next to nothing to a step that others share are left out.
7. `restored`: of rows that do the same work the circuit so far has one, and the model may need
   any: rows come back to heads of the circuit whose other rows the model needs.

A state is judged by the share it recovers of the gap between everything ablated and the model:
states are compared by the mean over hops, and enough is decided by the hop that is recovered least.
Choices are compared on a few examples (the sketch), and whether a state is enough is decided on all
examples of the search. There a row is only removed or renamed if enough is also recovered when all
other rows bring their mean outputs: even attention can do the work of a row that it replaces.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from hopscope.circuits.ablation import Ablation, Row
from hopscope.circuits.ablator import Ablator
from hopscope.circuits.adapters import CallbackModel
from hopscope.circuits.components import KNOWN_HOP, LEAST_GAP, Component, Instead
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Questions, examples_of
from hopscope.circuits.holding import with_holds
from hopscope.circuits.pattern import (
    AS_IN_MODEL,
    ITSELF,
    MEAN,
    RESAMPLE,
    UNIFORM,
    UNTOUCHED,
    Head,
    Pattern,
    Target,
    table_of,
)
from hopscope.circuits.progress import Progress
from hopscope.circuits.proposals import proposed_targets
from hopscope.circuits.tables import estimate_tables
from hopscope.configs import Discovery
from hopscope.facts import Role

ROUNDS = 3
"""The most passes over all rows for better targets."""
AT_A_TIME = 4
"""At most a fourth of the steps are removed before the others are compared again."""
MARGIN = 0.02
"""A removal is tried on all examples of the search if at most this share too much is lost on the
sketch. Shares differ by about as much between the two."""


@dataclass(frozen=True)
class Recovered:
    """The shares of the gap that states recover, with prescribed and with computed attention."""

    mean: Float[np.ndarray, "state 2"]
    """The mean over hops."""
    worst: Float[np.ndarray, "state 2"]
    """The share for the hop that is recovered least."""


class MeanLosses:
    """The mean losses of states of a model over some examples; each state is measured once."""

    def __init__(self, ablator: Ablator) -> None:
        self.ablator = ablator
        self._known: dict[Ablation, np.ndarray] = {}

    def losses(
        self, states: Sequence[Ablation], progress: Progress | None = None
    ) -> Float[np.ndarray, "state hop"]:
        """The mean losses over the examples."""
        new = [state for state in dict.fromkeys(states) if state not in self._known]
        if new:
            found = self.ablator.losses(new, progress)
            self._known |= zip(new, found.mean(1).double().cpu().numpy(), strict=True)
        return np.stack([self._known[state] for state in states])


class Search:
    """A model on the examples of the search: losses (cached), recovered shares and proposals."""

    def __init__(
        self, adapter: Adapter | CallbackModel, task: Questions, settings: Discovery, seed: int
    ) -> None:
        self.settings, self.progress = settings, Progress()
        self.examples, sketch = (
            examples_of(task, size, seed, "search") for size in (settings.examples, settings.sketch)
        )
        self.tables = estimate_tables(adapter, self.examples)
        self.sketch = Ablator(adapter, replace(sketch, tables=self.tables))
        self.on_sketch = MeanLosses(self.sketch)
        self.on_all = MeanLosses(Ablator(adapter, replace(self.examples, tables=self.tables)))
        self.heads = [(at, head) for at in range(adapter.layers) for head in range(adapter.heads)]

    def losses(
        self, states: Sequence[Ablation], progress: Progress | None = None
    ) -> Float[np.ndarray, "state hop"]:
        """The mean losses over the examples of the sketch."""
        return self.on_sketch.losses(states, progress)

    def recovered(
        self, states: Sequence[Ablation], *, on_all: bool = False, progress: Progress | None = None
    ) -> Recovered:
        """The shares that these states recover, with prescribed and with computed attention, on the
        sketch or on all examples of the search.
        """
        measured = self.on_all if on_all else self.on_sketch
        both = [each for state in states for each in (state, state.computed)]
        model, nothing = measured.losses([Ablation(), self.nothing])
        gap = nothing - model
        found = measured.losses(both, progress).reshape(len(states), 2, -1)
        known = gap > KNOWN_HOP * gap.max()
        if gap.mean() < LEAST_GAP:  # such as one of rounding errors, with hops that cancel
            return Recovered(np.zeros((len(states), 2)), np.zeros((len(states), 2)))
        mean = (nothing.mean() - found.mean(-1)) / gap.mean()
        return Recovered(mean, ((nothing - found)[..., known] / gap[known]).min(-1))

    def beside_means(self, states: Sequence[Ablation]) -> Float[np.ndarray, "state 2"]:
        """The mean shares over hops that these states recover on all examples of the search, if all
        other rows bring their mean outputs. 1 if that cannot be measured: if only attention can be
        replaced, or the model without attention is as good.
        """
        if isinstance(self.sketch.adapter, CallbackModel):
            return np.ones((len(states), 2))
        meaned = [state.resting(MEAN) for state in (self.nothing, *states)]
        both = [each for state in meaned[1:] for each in (state, state.computed)]
        model, nothing, *found = self.on_all.losses([Ablation(), meaned[0], *both]).mean(-1)
        if nothing - model < LEAST_GAP:
            return np.ones((len(states), 2))
        shares: np.ndarray = (nothing - np.reshape(found, (-1, 2))) / (nothing - model)
        return shares

    def prescribed(self, states: Sequence[Ablation]) -> Float[np.ndarray, "state"]:
        """The mean share over hops that these states recover with prescribed attention."""
        model, nothing = self.losses([Ablation(), self.nothing]).mean(-1)
        found: np.ndarray = (nothing - self.losses(states).mean(-1)) / max(nothing - model, 1e-9)
        return found

    @cached_property
    def proposals(self) -> Mapping[Row, list[Target]]:
        """The proposed targets of every row that has any, the most exact first."""
        its = self.sketch
        found = proposed_targets(its.examples, its.adapter, self.settings.noticed)
        return {row: found[row] for row in self.rows if row in found}

    def tables_for(self, row: Row) -> list[Target]:
        """The tables that a row can follow."""
        head, _ = row
        targets = (table_of("position", head), table_of("token", head))
        return [target for target in targets if target.sources[0] in self.tables]

    def targets_for(self, row: Row) -> list[Target]:
        """The proposed targets of a row, then its tables."""
        return [*self.proposals.get(row, ()), *self.tables_for(row)]

    @cached_property
    def rows(self) -> list[Row]:
        """Every row that can matter, head by head. In the last layer these are the rows of roles at
        which answers are read.
        """
        table, last = self.sketch.examples.table, self.sketch.adapter.layers - 1
        read = self.sketch.examples.roles.role[:, -self.sketch.read :].unique().tolist()
        answers = [table[number] for number in read]
        return [
            (head, role) for head in self.heads for role in (answers if head[0] == last else table)
        ]

    @cached_property
    def nothing(self) -> Ablation:
        """The state with everything ablated: each head attends evenly, or to its own position if
        that gives a clearly lower loss.
        """
        variants = [
            Ablation.of({head: Pattern(rest=rest)})
            for head in self.heads
            for rest in (UNIFORM, ITSELF)
        ]
        self.progress.step(f"what each of {len(self.heads)} heads is worth")
        uniform, itself = self.losses(variants, self.progress).mean(-1).reshape(-1, 2).T
        even = uniform <= self.settings.tie * itself
        rests = (UNIFORM if its else ITSELF for its in even)
        return Ablation.of(
            {h: Pattern(rest=rest) for h, rest in zip(self.heads, rests, strict=True)}
        )

    @property
    def itself(self) -> tuple[Head, ...]:
        """The heads that attend to their own position where they are ablated."""
        return tuple(head for head, its in self.nothing.changes if its == Pattern(rest=ITSELF))


def searched(search: Search) -> Ablation:
    """Run the search; returns the state of the circuit, with all other rows ablated."""
    state = drafted(search)
    state = improved(search, state)
    state = completed(search, state)
    required = Required.of(search, state)
    state = simplified(search, state, required)
    state = lightened(search, state, required)
    state = thinned(search, state, required)
    return restored(search, state, required)


def drafted(search: Search) -> Ablation:
    """The state in which every row with proposals has its first; all others are ablated."""
    state = search.nothing
    for row, targets in search.proposals.items():
        state = state.looking_at([row], targets[0])
    search.progress.step(f"{len(search.proposals)} of {len(search.rows)} attention rows have names")
    return state


def improved(search: Search, state: Ablation) -> Ablation:
    """For each row with proposals, take the target that recovers most, in up to `ROUNDS` passes."""
    best = float(search.prescribed([state])[0])
    rows = [*search.proposals]
    for number in range(ROUNDS):
        before = best
        for done, row in enumerate(rows):
            search.progress.at(number * len(rows) + done, ROUNDS * len(rows))
            trials, least = _others(search, state, row)
            found = search.prescribed(trials)
            gain = found - best - least
            most = int(gain.argmax())
            if gain[most] > 0:
                state, best = trials[most], float(found[most])
        if best < before + search.settings.spent:
            break
    return state


def _others(
    search: Search, state: Ablation, row: Row
) -> tuple[list[Ablation], Float[np.ndarray, "trial"]]:
    """The states with another target for a row, and how much more each must recover."""
    settings, now = search.settings, state.target(row)
    worth = dict.fromkeys(search.proposals[row], settings.better)
    worth |= dict.fromkeys(search.tables_for(row), settings.better_table)
    worth.pop(now, None)
    return [state.looking_at([row], target) for target in worth], np.array([*worth.values()])


def completed(search: Search, state: Ablation) -> Ablation:
    """Add rows until enough is recovered in both ways: rows with proposals, then tables, then rows
    as in the model.
    """
    search.progress.step("which attention rows are missing")
    live = {*state.live}
    missing = [row for row in search.rows if row not in live]
    named = [(row, search.proposals[row][0]) for row in missing if row in search.proposals]
    tables = [(row, target) for row in missing for target in search.tables_for(row)]
    as_in_model = [(row, AS_IN_MODEL) for row in search.rows]
    for choices in (named, tables, as_in_model):
        while not _enough(search, search.recovered([state], on_all=True))[0]:
            # The order of the sketch first: it costs a quarter of that of all examples.
            found = (_with_more(search, state, choices, on_all) for on_all in (False, True))
            more = next((its for its in found if its), None)
            if more is None:
                break
            state = more
    return state


def _with_more(
    search: Search, state: Ablation, choices: Sequence[tuple[Row, Target]], on_all: bool
) -> Ablation | None:
    """The state with some of the choices added, in the order of what each gains alone (on the
    sketch, or on all examples): the smallest number tried that recovers enough, or else the number
    that gains most. None if the gain is too small.
    """
    live = {row: state.target(row) for row in state.live}
    choices = [
        (row, target)
        for row, target in choices
        if row not in live or (target == AS_IN_MODEL and live[row] != target)
    ]
    now = _short(search, search.recovered([state], on_all=True))[0]
    least = search.settings.better_table
    if not choices or now <= least:  # no state can gain more than the shortage
        return None
    singles = [state, *(state.looking_at([row], target) for row, target in choices)]
    search.progress.step(f"what each of {len(choices)} more targets adds")
    measured = search.recovered(singles, on_all=on_all, progress=search.progress)
    before, *after = _short(search, measured)
    alone = before - np.array(after)
    order = [number for number in np.argsort(-alone, kind="stable") if alone[number] > 0]
    if not order:
        return None
    counts = {min(2**n, len(order)) for n in range(len(order).bit_length() + 1)}
    several, trials = state, []
    for count, number in enumerate(order, 1):
        row, target = choices[number]
        several = several.looking_at([row], target)
        if count in counts:
            trials.append(several)
    found = search.recovered(trials, on_all=True)
    short, enough = _short(search, found), _enough(search, found)
    best = int(enough.argmax()) if enough.any() else int(short.argmin())
    return trials[best] if short[best] < now - least else None


def _short(search: Search, found: Recovered) -> Float[np.ndarray, "state"]:
    """By how much the mean share is short of the aim, summed over both ways."""
    short: np.ndarray = np.maximum(search.settings.aimed - found.mean, 0).sum(-1)
    return short


def _enough(search: Search, found: Recovered) -> Bool[np.ndarray, "state"]:
    """True for states that reach the aim for every hop and in both ways."""
    return np.asarray((found.worst >= search.settings.aimed).all(-1))


@dataclass(frozen=True)
class Required:
    """How much a state must recover, with prescribed and with computed attention: the aim (with
    means in all other rows, enough), or a little less than the completed state, whichever is lower.
    """

    mean: Float[np.ndarray, "2"]
    worst: Float[np.ndarray, "2"]
    beside_means: Float[np.ndarray, "2"]

    @classmethod
    def of(cls, search: Search, completed: Ablation) -> "Required":
        """The requirement for all states that are derived from the completed one."""
        settings, found = search.settings, search.recovered([completed], on_all=True)
        every = (found.mean, found.worst, search.beside_means([completed]))
        aims = (settings.aimed, settings.aimed, settings.enough)
        least = [
            np.minimum(aim, its[0] - settings.spent) for aim, its in zip(aims, every, strict=True)
        ]
        return cls(*least)

    def slack(
        self, search: Search, states: Sequence[Ablation], *, on_all: bool = False
    ) -> Float[np.ndarray, "state"]:
        """By how much each state exceeds the requirement; negative if it fails. On the sketch, it
        is not measured beside means.
        """
        found = search.recovered(states, on_all=on_all)
        left: np.ndarray = np.minimum(found.mean - self.mean, found.worst - self.worst).min(-1)
        fine = left >= 0
        if on_all and fine.any():
            its = search.beside_means([*compress(states, fine)]) - self.beside_means
            left[fine] = np.minimum(left[fine], its.min(-1))
        return left


def simplified(search: Search, state: Ablation, required: Required) -> Ablation:
    """Give rows as in the model a proposed target, or else a table, if enough is recovered."""
    search.progress.step("which rows can be named after all")
    rows = [row for row in state.live if state.target(row) == AS_IN_MODEL]
    for done, row in enumerate(rows):
        search.progress.at(done, len(rows))
        for targets in (search.proposals.get(row, []), search.tables_for(row)):
            trials = [state.looking_at([row], target) for target in targets]
            if not trials:
                continue
            slack = required.slack(search, trials, on_all=True)
            if slack.max() >= 0:
                state = trials[int(slack.argmax())]
                break
    return state


def lightened(search: Search, state: Ablation, required: Required) -> Ablation:
    """Remove steps, cheapest first, while enough is recovered on all examples of the search."""
    search.progress.step("which steps are needed")
    needed: set[tuple[Row, ...]] = set()
    count = len(rows_by_step(state))
    while steps := [its for its in rows_by_step(state) if tuple(its) not in needed]:
        search.progress.at(count - len(steps), count)
        alone = required.slack(search, [state.without(rows) for rows in steps])
        order = [n for n in np.argsort(-alone, kind="stable") if alone[n] >= -MARGIN]
        if not order:
            break
        several = [state]
        for number in order[: max(1, len(steps) // AT_A_TIME)]:
            several.append(several[-1].without(steps[number]))
        lighter = _last_enough(search, several[1:], required)
        if lighter is None:
            needed.add(tuple(steps[order[0]]))
        else:
            state = lighter
    return state


def _last_enough(search: Search, states: Sequence[Ablation], required: Required) -> Ablation | None:
    """The last of these states that recovers enough; it is tried first, as it often does."""
    for some in (states[-1:], states[:-1]):
        if some:
            fine = np.flatnonzero(required.slack(search, some, on_all=True) >= 0)
            if len(fine):
                return some[int(fine[-1])]
    return None


def thinned(search: Search, state: Ablation, required: Required) -> Ablation:
    """Leave out heads of a step that change the model's loss by less than `needed` of the gap, with
    and without its other heads, if another changes it more. Ablated rows bring what they do in
    `nothing`, and then (where it can be replaced) their mean: even attention may do their work.
    """
    model, nothing = search.on_all.losses([Ablation(), search.nothing]).mean(-1)
    least = search.settings.needed * (nothing - model)
    ablated = [search.nothing]
    if not isinstance(search.sketch.adapter, CallbackModel):
        ablated.append(search.nothing.resting(MEAN))
    for rows in rows_by_step(state):
        apart = [each for its in ablated for each in apart_of(its, rows)]
        if not apart:
            continue
        losses = search.on_all.losses([its for each in apart for its in each[1:]]).mean(-1)
        without, only, none = losses.reshape(-1, 3).T
        changes = np.maximum(np.abs(without - model), np.abs(none - only))
        worth = changes.reshape(len(ablated), -1).max(0)
        ignored = [row for row, its in zip(rows, worth, strict=True) if its < least]
        if 0 < len(ignored) < len(rows):
            lighter = state.without(ignored)
            if required.slack(search, [lighter], on_all=True)[0] >= 0:
                state = lighter
    return state


def restored(search: Search, state: Ablation, required: Required) -> Ablation:
    """Put back rows to the heads of the circuit, if the model needs their other rows, until it does
    not. They get a proposed target, or else a table, with which enough is still recovered. Heads
    that share a step are taken together. (No head comes back as a whole: if others do all its work,
    the circuit shows another way.)
    """
    search.progress.step("which other rows the model needs")
    steps = [frozenset(head for head, _ in rows) for rows in rows_by_step(state)]
    used = {head for heads in steps for head in heads}
    together = (frozenset().union(*(its for its in steps if head in its)) for head in sorted(used))
    for heads in dict.fromkeys(together):
        state = _with_more_of(search, state, left_out(search, state, heads), required)
    return state


def _with_more_of(search: Search, state: Ablation, left: "LeftOut", required: Required) -> Ablation:
    """The state with some of these rows put back, each time the one whose return helps most, with
    those of the same role that have the same target and help, too.
    """
    while (harm := _worst(search, [left])[0]) > search.settings.needed:
        rows = [row for row in left.rows if search.targets_for(row)]
        harms = _worst(search, [left.but([row]) for row in rows])
        if not harms or min(harms) > harm - search.settings.spent:
            break
        steps = _steps_back(search, left, rows, rows[int(np.argmin(harms))])
        trials = [state.looking_at(its, target) for target, its in steps.items()]
        if not trials:
            break
        fine = np.flatnonzero(required.slack(search, trials, on_all=True) >= 0)
        if not len(fine):
            break
        state = trials[int(fine[0])]
        left = left.but(state.live)
    return state


def _steps_back(
    search: Search, left: "LeftOut", rows: Sequence[Row], best: Row
) -> dict[Target, list[Row]]:
    """The targets of a row that say what it does in the model, each with the rows that come back.
    The circuit does not need the row, so its rule has to hold, and the model has to lose no more
    if its rows look at the target.
    """
    (layer, _), role = best
    back = {}
    for target in search.targets_for(best):
        same = [row for row in rows if row[1] == role and target in search.targets_for(row)]
        if its := _that_help(search, left, same):
            back[target] = its
    steps = [
        Component(layer=layer, heads=tuple(h for (_, h), _ in its), destinations=(role,), target=t)
        for t, its in back.items()
    ]
    examples, noticed = search.on_all.ablator.examples, search.settings.noticed
    held = with_holds(search.sketch.adapter, examples, steps, noticed)
    found = {}
    for step, (target, its) in zip(held, back.items(), strict=True):
        others = left.but(its)
        as_in_model, told = _worst(search, [others, others.looking_at(its, target)])
        if not step.only_enough and told <= as_in_model + search.settings.spent:
            found[target] = its
    return found


def _that_help(search: Search, left: "LeftOut", rows: Sequence[Row]) -> list[Row]:
    """Those of these rows whose return helps, alone or beside the others."""
    least = search.settings.spent
    before, after = _worst(search, [left, left.but(rows)])
    alone = _worst(search, [left.but([row]) for row in rows])
    others = _worst(search, [left.but([each for each in rows if each != row]) for row in rows])
    worth = zip(rows, alone, others, strict=True)
    return [row for row, its, rest in worth if before - its >= least or rest - after >= least]


@dataclass(frozen=True)
class LeftOut:
    """Rows that a circuit leaves out. In the model they alone are replaced."""

    rows: Mapping[Row, Target]
    """The rows, each with its target where everything is ablated."""
    ways: tuple[Instead, ...]
    """The ways to replace them."""
    beside: Mapping[Row, Target] = field(default_factory=dict)
    """Other rows that look at a target."""

    def model(self, instead: Instead) -> Ablation:
        """The model in which these rows are replaced in this way."""
        carried = {"mean": MEAN, "resample": RESAMPLE}
        replaced = {row: carried.get(instead, its) for row, its in self.rows.items()}
        return _with({**replaced, **self.beside})

    def but(self, some: Sequence[Row]) -> "LeftOut":
        """The same without some of these rows."""
        return replace(self, rows={row: its for row, its in self.rows.items() if row not in some})

    def looking_at(self, rows: Sequence[Row], target: Target) -> "LeftOut":
        """The same, and other rows look at a target."""
        return replace(self, beside=dict.fromkeys(rows, target))


def left_out(search: Search, state: Ablation, heads: Collection[Head]) -> LeftOut:
    """The rows of these heads that a state leaves out: they are ablated, and bring their mean.

    Heads that are left out as a whole instead bring what they bring in another example: others may
    do their work without them, and not with a wrong output. (The other rows of a head that is used
    may write what nobody reads, as long as it does not mislead.)
    """
    live = {*state.live}
    rows = [row for row in search.rows if row[0] in heads and row not in live]
    used = any(head in heads for head, _ in live)
    ways: tuple[Instead, ...] = ("ablated", "mean" if used else "resample")
    if isinstance(search.sketch.adapter, CallbackModel):
        ways = ("ablated",)
    return LeftOut({row: search.nothing.target(row) for row in rows}, ways)


def needed_outside(search: Search, state: Ablation) -> list[tuple[Head, Instead, Ablation]]:
    """The heads whose left-out rows the model needs: without them it loses more than `needed` of
    the gap; each way in which it does, and the model in which they are so replaced.
    """
    every = [left_out(search, state, [head]) for head in search.heads]
    return [
        (head, way, left.model(way))
        for head, left, harms in zip(search.heads, every, _harms(search, every), strict=True)
        for way, harm in harms.items()
        if harm > search.settings.needed
    ]


def _harms(search: Search, every: Sequence[LeftOut]) -> list[dict[Instead, float]]:
    """The share of the gap that the model loses in each way, on all examples of the search."""
    states = [left.model(way) for left in every for way in left.ways]
    model, nothing, *found = search.on_all.losses(
        [Ablation(), search.nothing, *states], search.progress
    ).mean(-1)
    shares = iter((np.array(found) - model) / max(nothing - model, 1e-9))
    return [{way: float(next(shares)) for way in left.ways} for left in every]


def _worst(search: Search, every: Sequence[LeftOut]) -> list[float]:
    return [max(its.values()) for its in _harms(search, every)]


def _with(targets: Mapping[Row, Target]) -> Ablation:
    """The model in which these rows look at other targets."""
    changes: dict[Head, Pattern] = {}
    for (head, role), its in targets.items():
        changes[head] = changes.get(head, UNTOUCHED).with_target(role, its)
    return Ablation.of(changes)


class Apart(NamedTuple):
    """The model without some of the rows that several heads share."""

    head: Head
    without: Ablation
    """The rows of this head are ablated."""
    only: Ablation
    """The rows of the other heads are ablated."""
    none: Ablation
    """All rows are ablated."""


def apart_of(nothing: Ablation, rows: Sequence[Row]) -> list[Apart]:
    """For each head that shares these rows, the model without some of them, which are as in
    `nothing`.
    """

    def without(rows: Iterable[Row]) -> Ablation:
        return _with({row: nothing.target(row) for row in rows})

    heads = [*dict.fromkeys(head for head, _ in rows)]
    return [
        Apart(
            head,
            without(row for row in rows if row[0] == head),
            without(row for row in rows if row[0] != head),
            without(rows),
        )
        for head in heads
        if len(heads) > 1
    ]


def rows_by_step(state: Ablation) -> list[list[Row]]:
    """The rows of each step: one role looking at one target in one layer, with any heads."""
    groups: dict[tuple[int, Target, Role], list[Row]] = {}
    for head, role in state.live:
        groups.setdefault((head[0], state.target((head, role)), role), []).append((head, role))
    return [*groups.values()]
