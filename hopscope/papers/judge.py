"""The one judge of claims: what holds for how many models, under which variant of the paper.

A *variant* is one way to fill in what the paper leaves open; the first is what we take it to mean.
A *setting* is a case for which the claim is made, such as a number of layers: it has to hold in
each. A verdict takes three seeds of each setting, unless the claim is of something that no seed
changes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from hopscope import intervals
from hopscope.display import Displayed
from hopscope.papers.permutation import permutation_test
from hopscope.papers.row import Row

Verdict = Literal[
    "reproduced",
    "not reproduced",
    "depends on an open choice",
    "at smaller scale",
    "needs larger models",
    "not enough seeds",
    "not measured",
]
SEEDS = 3
"""Seeds of each setting that a verdict takes; as many as the paper's transformers A, B and C."""
FEW = 3
"""Settings or variants of which no more are named."""

R = TypeVar("R", bound=Row)


def out_of(right: int, count: int) -> str:
    """How many of how many, in words."""
    return f"{right} of {count}"


def of_models(right: int, count: int) -> str:
    """The same of models, which are drawn by their seeds: with the interval of the share.

    >>> of_models(2, 3)
    '2 of 3 models (95 %: 0.21 … 0.94)'
    """
    low, high = intervals.share(right, count)
    return f"{out_of(right, count)} models (95 %: {low:.2f} … {high:.2f})"


def span(values: Iterable[float], digits: int | None = None) -> str:
    """From the least to the greatest, rounded unless they are exact.

    >>> span([0.9951, 0.9948, 0.995], 3), span([])
    ('0.995', '–')
    >>> span([0.3, -0.1], 1)
    '−0.1 … 0.3'
    """
    found = sorted(values)
    if not found:
        return "–"
    ends = [
        (f"{value}" if digits is None else f"{value:.{digits}f}").replace("-", "−")
        for value in (found[0], found[-1])
    ]
    return ends[0] if ends[0] == ends[1] else " … ".join(ends)


def number_list(values: Iterable[int | float]) -> str:
    """Numbers, one for each model."""
    return ", ".join(f"{value}" if isinstance(value, int) else f"{value:.4f}" for value in values)


def several(names: Sequence[str]) -> str:
    """Names, of which a few are said."""
    more = len(names) - FEW
    return " / ".join([*names[:FEW], *([f"{more} more"] if more > 0 else [])])


@dataclass(frozen=True)
class Tally:
    """Whether a claim holds under one variant."""

    variant: str
    """Its name; empty where the paper leaves nothing open."""
    holds: bool
    ours: str
    """Our value, as the paper writes its own."""
    models: dict[str, bool]
    """Whether it holds for each model, by setting and seed. Empty if it is a claim about all."""
    count: int
    """How many models were measured."""
    seeds: int
    """Seeds of the setting that has fewest."""
    enough: bool
    """Are there enough seeds for a verdict?"""
    drawn: bool
    """Are the models a sample of seeds?"""
    failed: tuple[str, ...]
    """The settings in which it does not hold."""

    @property
    def right(self) -> int:
        """For how many models it holds."""
        return sum(self.models.values()) if self.models else self.count * self.holds

    @property
    def said(self) -> str:
        """For how many models it holds, in words."""
        if not self.models:
            return f"{'holds' if self.holds else 'does not hold'} for {self.count} models together"
        count = len(self.models)
        known = of_models(self.right, count) if self.drawn else out_of(self.right, count)
        return f"holds for {known}" + f", not in {several(self.failed)}" * any(self.failed)


@dataclass(frozen=True)
class Finding(Displayed):
    """What came of a claim."""

    verdict: Verdict
    ours: str = "–"
    """Our value, as the paper writes its own."""
    evidence: str = ""
    """For how many models it holds, and under which variant; why there is no verdict."""
    outcomes: tuple[Tally, ...] = ()
    """The same for each variant, the one that we take the paper to mean first."""
    chance: float | None = None
    """How likely the models of each variant would agree as well if variants made no difference."""
    notes: tuple[str, ...] = ()
    """Less training than the paper's, and files that cannot be read."""
    cost: tuple[str, ...] = ()
    """Models, seeds and cost of training of each experiment that was judged."""

    def __repr__(self) -> str:
        return f"Finding({self.verdict}: {self.ours})"


@dataclass(frozen=True)
class Judge(Generic[R]):
    """Judges a claim from rows."""

    kind: type[R]
    holds: Callable[[Any], bool]
    """Does the claim hold? Called with what `of` says."""
    ours: Callable[[list[R]], str]
    """Our value, from the rows of a variant."""
    of: Literal["row", "seed", "all"] = "row"
    """Whether it holds of each row, of all rows of a seed, or of all models of a variant."""
    among: Callable[[R], bool] = lambda _: True
    """Which rows are meant."""
    once: Callable[[list[R]], list[R]] = list
    """Chooses among rows of the same model, such as the longest training."""
    variant: Callable[[R], str] = lambda _: ""
    setting: Callable[[R], str] = lambda _: ""
    settings: tuple[str, ...] = ()
    """Settings of which there have to be models."""
    model: Callable[[R], str] = lambda _: ""
    """What tells models of one setting and seed apart, where that is no setting."""
    who: Callable[[R], Any] = field(default=lambda row: getattr(row, "seed", None))
    """What is drawn at random: a model's seed."""
    first: str | None = None
    """The variant that we take the paper to mean; unset: that of the first row."""
    alike: Callable[[list[R]], Any] = lambda _: None
    """Variants for which this is the same, such as the length of training, can be compared."""
    seeds: int = SEEDS
    no_seeds: str = ""
    """Why no seed is needed, where none is."""
    undecided: Callable[[list[R]], str] = lambda _: ""
    """Why these rows decide nothing; empty if they do."""
    too_small: Callable[[list[R]], str] = lambda _: ""
    """Why models for which the claim does not hold cannot refute it; empty if they can."""

    def __call__(self, rows: Sequence[Row]) -> Finding:
        """The verdict of these rows."""
        known = self.counted(rows)
        if not known:
            return Finding("not measured", evidence="there are no such rows")
        if why := self.undecided(known):
            return Finding("not measured", evidence=why)
        variants = group(known, self.variant)
        first = next(iter(variants)) if self.first is None else self.first
        if first not in variants:
            return Finding("not measured", evidence=f"no model of the variant {first}")
        lacking = [name for name in self.settings if name not in group(known, self.setting)]
        if lacking:
            return Finding("not measured", evidence=f"no model of {several(lacking)}")
        names = [first, *(name for name in variants if name != first)]
        outcomes = [self.outcome(name, variants[name]) for name in names]
        comparable = [
            each for each in outcomes
            if self.alike(variants[each.variant]) == self.alike(variants[first])
        ]  # fmt: skip
        return self._finding(outcomes, [each.variant for each in comparable], variants)

    def counted(self, rows: Sequence[Row]) -> list[R]:
        """The rows that are judged, each model once, by seed."""
        meant = [row for row in rows if isinstance(row, self.kind) and self.among(row)]
        return sorted(self.once(meant), key=lambda row: getattr(row, "seed", 0))

    def outcome(self, variant: str, rows: list[R]) -> Tally:
        """Does the claim hold for the models of one variant?"""
        settings = group(rows, self.setting)
        drawn = {name: {self.who(row) for row in own} for name, own in settings.items()}
        models: dict[str, bool] = {}
        failed: tuple[str, ...] = ()
        if self.of == "all":
            held = self.holds(rows)
        elif self.of == "seed":
            whole = set.intersection(*drawn.values())
            by_seed = {who: [row for row in rows if self.who(row) == who] for who in whole}
            models = {str(who): self.holds(own) for who, own in sorted(by_seed.items())}
            drawn = {"": whole}
            held = bool(models) and all(models.values())
        else:
            every = group(rows, lambda row: (self.setting(row), self.model(row), self.who(row)))
            by_model = {key: all(map(self.holds, own)) for key, own in every.items()}
            models = {" ".join(filter(None, map(str, k))): its for k, its in by_model.items()}
            failed = tuple(dict.fromkeys(key[0] for key, its in by_model.items() if not its))
            held = not failed
        count = len(models) or sum(map(len, drawn.values()))
        seeds = min(map(len, drawn.values()))
        return Tally(
            variant, held, self.ours(rows), models, count, seeds,
            enough=bool(self.no_seeds) or seeds >= self.seeds, drawn=not self.no_seeds,
            failed=failed,
        )  # fmt: skip

    def _finding(
        self, outcomes: list[Tally], comparable: list[str], rows: dict[str, list[R]]
    ) -> Finding:
        """The verdict that the outcomes under all variants give together."""
        first, others = outcomes[0], outcomes[1:]
        holding = [each for each in others if each.holds and self._covers(each, first, rows)]
        sure = [each for each in holding if each.enough]
        against = [each for each in others if each.variant in comparable and not each.holds]
        against = [each for each in against if each.enough]
        verdict: Verdict = "not reproduced"
        if not first.enough:
            verdict = "not enough seeds"
        elif first.holds:
            verdict = "depends on an open choice" if against else "reproduced"
        elif sure:
            verdict = "depends on an open choice"
        elif holding:
            verdict = "not enough seeds"
        ours = first.ours
        if verdict == "depends on an open choice" and not first.holds:
            ours = f"{first.variant}: {first.ours}; {sure[0].variant}: {sure[0].ours}"
        evidence = self._evidence(first, others, holding, against if first.holds else [])
        small = self.too_small([row for own in rows.values() for row in own])
        if verdict == "not reproduced" and small:
            verdict, evidence = "needs larger models", f"{evidence}; {small}"
        depends = verdict == "depends on an open choice"
        return Finding(
            verdict, ours, evidence, tuple(outcomes),
            self._chance(outcomes, sure or against, rows) if depends else None,
        )  # fmt: skip

    def _covers(self, other: Tally, first: Tally, rows: dict[str, list[R]]) -> bool:
        """Was another variant tried in each setting in which the first does not hold?"""
        return set(first.failed) <= set(group(rows[other.variant], self.setting))

    def _evidence(
        self,
        first: Tally,
        others: list[Tally],
        holding: list[Tally],
        against: list[Tally],
    ) -> str:
        """In words: under the first variant, and under how many others."""
        words = [f"{first.variant}: {first.said}" if first.variant else first.said]
        words += [self.no_seeds] if self.no_seeds else []
        enough = [each for each in others if each.enough]
        if enough:
            named = [each.variant for each in holding if each.enough]
            how = f"it holds under {out_of(len(named), len(enough))} other variants"
            words.append(f"{how}{': ' * bool(named)}{several(named)}")
        if against:
            names = several([each.variant for each in against])
            words.append(f"it does not hold under these, which can be compared: {names}")
        few = [each for each in holding if not each.enough]
        if few:
            told = " / ".join(f"{each.variant}: {each.said}" for each in few)
            words.append(f"fewer than {self.seeds} seeds of {told}")
        if not first.enough:
            words.append(f"a verdict takes {self.seeds} seeds, and there are {first.seeds}")
        return "; ".join(words)

    def _chance(
        self,
        outcomes: list[Tally],
        deciding: list[Tally],
        rows: dict[str, list[R]],
    ) -> float | None:
        """The permutation test over the variants that can be compared with those that decide."""
        if self.of == "all" or any(len(group(own, self.setting)) > 1 for own in rows.values()):
            return None
        near = self.alike(rows[deciding[0].variant])
        known = [
            [(key.split()[-1], its) for key, its in each.models.items()]
            for each in outcomes
            if each.enough and self.alike(rows[each.variant]) == near
        ]
        return permutation_test(known) if len(known) > 1 else None


def group(rows: Iterable[R], key: Callable[[R], Any]) -> dict[Any, list[R]]:
    """The rows by what this says of each, in the order in which it first appears."""
    found: dict[Any, list[R]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
