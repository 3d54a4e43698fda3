"""The search behind discovery: what may be given up, and what explains the rest.

A *state* says what every head does. It starts with every row of attention as the model has it.
Giving up rows, cheapest first, until the hops would no longer be solved leaves the rows that
matter; then each of those is replaced by the simplest aim that does as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from hopscope.circuits.ablation import Ablation, Head
from hopscope.circuits.bench import Bench
from hopscope.circuits.hypotheses import hypotheses, strongest
from hopscope.circuits.maps import role_maps
from hopscope.circuits.mechanism import AS_IS, ITSELF, UNIFORM, Aim, Mechanism, aim
from hopscope.facts import Role

State = Mapping[Head, Mechanism]
Row = tuple[Head, Role]
HopLosses = Float[np.ndarray, "hop"]

LOW_SHARE = 1 / 15
"""A low loss: this share of the guessing level (the paper's 0.05 of 0.75) …"""
LOW_FACTOR = 1.2
"""… or this many times the model's own loss, whichever is more."""
HOP_SHARE, HOP_FACTOR = 1 / 8, 1.5
"""The same for the worst single hop, which a mean over many hops would hide."""
TIE = 1.05
"""Uniform attention is preferred to an identity that is no better than by this factor."""


@dataclass(frozen=True)
class Slack:
    """An aim does as well if it costs at most this factor, or this share of a low loss."""

    factor: float
    share: float

    def __call__(self, low: float, base: float) -> float:
        """The loss that is good enough."""
        return max(self.factor * base, base + self.share * low)


LOOSE, TIGHT = Slack(1.2, 0.1), Slack(1.02, 0.02)
"""Simple aims that cost a little are tried first; if that adds up to too much, exact ones."""
ROUGH = 1.2
"""A few examples may say a loss is this many times what it is."""
HOPELESS = 2.0
"""If a few examples say that it is this many times its limit, more examples are not asked."""
ABANDON = 1.5
"""Times a low loss. A little above is no reason to stop: ideal attention often helps later on."""


@dataclass(frozen=True)
class Limits:
    """What counts as solved: a low mean loss, and no hop that fails."""

    mean: float
    hop: Float[np.ndarray, "hop"]

    @classmethod
    def of(cls, clean: Float[np.ndarray, "hop"], guess: float) -> "Limits":
        mean = max(LOW_FACTOR * float(clean.mean()), LOW_SHARE * guess)
        return cls(mean, np.maximum(HOP_FACTOR * clean, HOP_SHARE * guess))

    def keeps(self, losses: Float[np.ndarray, "*variant hop"]) -> np.ndarray:
        """Is the task still solved?"""
        return np.asarray((losses.mean(-1) <= self.mean) & (losses <= self.hop).all(-1))


class Search:
    """States of one subject on one probe, and their losses."""

    def __init__(self, bench: Bench, sketch: Bench | None = None) -> None:
        self.bench, self.sketch = bench, sketch or bench
        self._known: dict[tuple[Bench, Ablation], HopLosses] = {}
        subject = bench.subject
        self.maps = role_maps(subject, bench.probe)
        self.heads = [(at, head) for at in range(subject.layers) for head in range(subject.heads)]

    def losses(
        self, states: Sequence[State], roughly: bool = False
    ) -> Float[np.ndarray, "state hop"]:
        """Mean losses over the examples (roughly: over a few of them)."""
        bench = self.sketch if roughly else self.bench
        keys = [(bench, Ablation.of(state)) for state in states]
        new = [key for key in dict.fromkeys(keys) if key not in self._known]
        if new:
            found = bench.losses([ablation for _, ablation in new])
            self._known |= zip(new, found.mean(1).double().cpu().numpy(), strict=True)
        return np.stack([self._known[key] for key in keys])

    def rows_of(self, head: Head) -> tuple[Role, ...]:
        """The roles whose rows can matter: in the last layer, those that are read."""
        probe, subject = self.bench.probe, self.bench.subject
        if head[0] < subject.layers - 1:
            return probe.table
        read = probe.roles.role[:, -self.bench.read :].unique().tolist()
        return tuple(probe.table[number] for number in read)

    def untouched(self) -> dict[Head, Mechanism]:
        """Every row as the model has it; beside it, what each head does when it does nothing.

        That is to look everywhere, or to stay where it is, whichever costs less.
        """
        variants = [{h: Mechanism(rest=rest)} for h in self.heads for rest in (UNIFORM, ITSELF)]
        uniform, itself = self.losses(variants, roughly=True).mean(-1).reshape(-1, 2).T
        neutral = [
            UNIFORM if u <= TIE * i else ITSELF for u, i in zip(uniform, itself, strict=True)
        ]
        return {
            head: Mechanism(tuple((role, AS_IS) for role in self.rows_of(head)), rest)
            for head, rest in zip(self.heads, neutral, strict=True)
        }

    def all_rows(self, head: Head) -> list[Row]:
        return [(head, role) for role in self.rows_of(head)]

    def pruned(self, state: State, parts: Sequence[Sequence[Row]], limits: Limits) -> State:
        """Give up parts (sets of rows), cheapest first, as long as the task stays solved.

        Which are cheap is seen roughly first, and exactly once that leads no further.
        """
        for roughly in (True, False):
            left = list(parts)
            while left:
                left = self._cheap(state, left, limits, roughly)
                count = self._most(state, left, limits)
                if not count:
                    break
                state = self.less(state, [row for part in left[:count] for row in part])
                left = left[count:]
            given_up = {row for part in parts for row in part} - set(live(state))
            parts = [part for part in parts if not given_up & set(part)]
        return state

    def _cheap(
        self, state: State, parts: Sequence[Sequence[Row]], limits: Limits, roughly: bool
    ) -> list[Sequence[Row]]:
        """The parts without which the task may stay solved, cheapest first."""
        parts = self._passing(state, parts, limits, ROUGH if roughly else HOPELESS)
        return parts if roughly else self._passing(state, parts, limits)

    def _passing(
        self,
        state: State,
        parts: Sequence[Sequence[Row]],
        limits: Limits,
        slack: float | None = None,
    ) -> list[Sequence[Row]]:
        """The parts that cost no more than the limits, cheapest first.

        With a slack, a few examples say so, and the limits are that many times as high.
        """
        if not parts:
            return []
        losses = self.losses([self.less(state, part) for part in parts], slack is not None)
        kept = limits.keeps(losses / (slack or 1.0))
        return [parts[n] for n in np.argsort(losses.mean(-1), kind="stable") if kept[n]]

    def less(self, state: State, rows: Iterable[Row]) -> State:
        """The state with these rows given up, while others attend on their own.

        A row that looks at one role looks evenly at everything but that role: looking at
        everything would leave a little of it, by which sharp heads still find their way.
        """
        for head, role in rows:
            source = strongest(self.maps, *head, role)
            if source is None:
                state = without(state, [(head, role)])
            else:
                state = with_aim(state, (head, role), aim("elsewhere", source))
        return state

    def _most(self, state: State, parts: Sequence[Sequence[Row]], limits: Limits) -> int:
        """How many of the first parts can go together, by halving."""
        counts = [len(parts) >> shift for shift in range(len(parts).bit_length())]
        trials = [self.less(state, [row for p in parts[:count] for row in p]) for count in counts]
        if not trials:
            return 0
        passed = limits.keeps(self.losses(trials))
        return next((count for count, ok in zip(counts, passed, strict=True) if ok), 0)

    def explained(self, state: State, limits: Limits) -> State:
        """Replace each row by the simplest aim that does as well; else leave it as it is."""
        start = only(state, live(state))
        found, losses = self._each_row(start, LOOSE, limits)
        if limits.keeps(losses):
            return found
        found, losses = self._each_row(start, TIGHT, limits)
        # What the tight pass left as it is may cost a little after all.
        last, its = self._each_row(found, LOOSE, limits)
        return last if limits.keeps(its) or not limits.keeps(losses) else found

    def _each_row(self, state: State, slack: Slack, limits: Limits) -> tuple[State, HopLosses]:
        """Explain the rows that are as the model has them, one after the other."""
        losses = self.losses([state])[0]
        for head, role in live(state):
            if state[head].of(role) == AS_IS:
                state, losses = self._explain(state, losses, (head, role), (slack, limits))
            if slack is LOOSE and losses.mean() > ABANDON * limits.mean:
                break
        return state, losses

    def _explain(
        self, state: State, losses: HopLosses, row: Row, asked: tuple[Slack, Limits]
    ) -> tuple[State, HopLosses]:
        """The state with the first aim for the row that is good enough, and its losses."""
        slack, limits = asked
        enough = slack(limits.mean, float(losses.mean()))
        for wave in self._waves(row):
            trials = [with_aim(state, row, proposed) for proposed in wave]
            trials = self._promising(state, trials, enough, asked)
            found = self.losses(trials) if trials else np.empty((0, 1))
            for trial, its in zip(trials, found, strict=True):
                if its.mean() <= enough:
                    return trial, its
        return state, losses

    def _waves(self, row: Row) -> Iterator[list[Aim]]:
        """Hypotheses for a row, as many at a time as are measured together: the first may do."""
        (layer, head), role = row
        size = max(2, self.bench.at_once)
        for wave in hypotheses(self.maps, layer, head, role):
            yield from (wave[start : start + size] for start in range(0, len(wave), size))

    def _promising(
        self, state: State, trials: list[State], enough: float, asked: tuple[Slack, Limits]
    ) -> list[State]:
        """Those that a few examples do not rule out, on which the state may be better or worse."""
        if self.sketch is self.bench or not trials:
            return trials
        slack, limits = asked
        now, *rough = self.losses([state, *trials], roughly=True).mean(-1)
        most = ROUGH * max(slack(limits.mean, now), enough)
        return [trial for trial, its in zip(trials, rough, strict=True) if its <= most]


def live(state: State) -> list[Row]:
    """The rows that do something: those with an aim that is not to be elsewhere."""
    return [
        (head, role)
        for head, mechanism in state.items()
        for role, aim in mechanism.aims
        if aim.targets[0].where != "elsewhere"
    ]


def only(state: State, rows: Iterable[Row]) -> State:
    """The state with every other row doing nothing."""
    kept = set(rows)
    given_up = [(h, role) for h, m in state.items() for role in m.readers if (h, role) not in kept]
    return without(state, given_up)


def without(state: State, rows: Iterable[Row]) -> State:
    """The state with these rows doing nothing."""
    changed = dict(state)
    for head, role in rows:
        changed[head] = changed[head].without(role)
    return changed


def with_aim(state: State, row: Row, new: Aim) -> State:
    """The state with another aim for one row."""
    head, role = row
    return {**state, head: state[head].with_aim(role, new)}
