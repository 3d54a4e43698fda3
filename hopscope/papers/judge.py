"""The judge of claims: for how many models a claim holds, under which variants of the paper.

A *variant* is one way to fill in what the paper leaves open; the first is how we read the paper. A
*setting* is a case for which the claim is made, such as a number of layers; the claim must hold in
each. A verdict needs three seeds of each setting, unless no seed can change the result.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from hopscope import intervals
from hopscope.display import Displayed
from hopscope.papers.permutation import permutation_test
from hopscope.papers.row import ResultRow

Verdict = Literal[
    "reproduced",
    "not reproduced",
    "depends on an open choice",
    "at smaller scale",
    "needs larger models",
    "not enough seeds",
    "not measured",
]
LEAST_SEEDS = 3
"""Seeds of each setting that a verdict needs; as many as the paper's transformers A, B and C."""
FEW = 3
"""Largest number of settings or variants that are named."""

R = TypeVar("R", bound=ResultRow)


def out_of(right: int, count: int) -> str:
    """Return a count out of a total as text."""
    return f"{right} of {count}"


def of_models(models: Sequence[tuple[str, bool]]) -> str:
    """Return for how many models, each with its seed, a claim holds as text, with a 95 % interval.

    Models of one seed are not independent, so the interval is of the share of seeds: of those for
    all of whose models the claim holds.

    >>> of_models([("0", True), ("1", True), ("2", False)])
    '2 of 3 models (95 %: 0.21 … 0.94)'
    >>> of_models([("0", True), ("0", True), ("1", True), ("1", False)])
    '3 of 4 models, all those of 1 of 2 seeds (95 %: 0.09 … 0.91)'
    """
    failed = {seed for seed, holds in models if not holds}
    seeds = {seed for seed, _ in models}
    right, count = len(seeds - failed), len(seeds)
    low, high = intervals.share(right, count)
    text = f"{out_of(sum(holds for _, holds in models), len(models))} models"
    if count == len(models):
        return f"{text} (95 %: {low:.2f} … {high:.2f})"
    return f"{text}, all those of {out_of(right, count)} seeds (95 %: {low:.2f} … {high:.2f})"


def span(values: Iterable[float], digits: int | None = None) -> str:
    """Return the range of values as text; `digits` rounds them (None: exact).

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
    """Return numbers, one for each model, as text."""
    return ", ".join(f"{value}" if isinstance(value, int) else f"{value:.4f}" for value in values)


def several(names: Sequence[str]) -> str:
    """Return the first few names as text, and the number of the others."""
    more = len(names) - FEW
    return " / ".join([*names[:FEW], *([f"{more} more"] if more > 0 else [])])


@dataclass(frozen=True)
class Tally:
    """Whether a claim holds under one variant."""

    variant: str
    """The variant's name; empty if the paper leaves nothing open."""
    holds: bool
    ours: str
    """Our value, in the form of the paper's value."""
    models: dict[str, bool]
    """Whether the claim holds for each model, by setting and seed; empty if it is about all."""
    count: int
    """The number of measured models."""
    seeds: int
    """The least number of seeds of a setting."""
    enough: bool
    """Whether there are enough seeds for a verdict."""
    drawn: bool
    """Whether the models are a sample of seeds."""
    failed: tuple[str, ...]
    """The settings in which the claim does not hold."""

    @property
    def right(self) -> int:
        """The number of models for which the claim holds."""
        return sum(self.models.values()) if self.models else self.count * self.holds

    @property
    def by_seed(self) -> list[tuple[str, bool]]:
        """The seed of each model, and whether the claim holds for it."""
        return [(name.split()[-1], holds) for name, holds in self.models.items()]

    @property
    def said(self) -> str:
        """A text on how many models the claim holds for."""
        if not self.models:
            return f"{'holds' if self.holds else 'does not hold'} for {self.count} models together"
        known = of_models(self.by_seed) if self.drawn else out_of(self.right, len(self.models))
        return f"holds for {known}" + f", not in {several(self.failed)}" * any(self.failed)


@dataclass(frozen=True)
class Finding(Displayed):
    """The verdict on a claim."""

    verdict: Verdict
    ours: str = "–"
    """Our value, in the form of the paper's value."""
    evidence: str = ""
    """For how many models and under which variants the claim holds, or why there is no verdict."""
    outcomes: tuple[Tally, ...] = ()
    """The outcome of each variant; first the one by which we read the paper."""
    chance: float | None = None
    """The p-value of the permutation test (variants make no difference); None if not computed."""
    notes: tuple[str, ...] = ()
    """Notes on shorter training than the paper's, and on unreadable files."""
    cost: tuple[str, ...] = ()
    """Models, seeds and training cost of each judged experiment."""

    def __repr__(self) -> str:
        return f"Finding({self.verdict}: {self.ours})"


@dataclass(frozen=True)
class Judge(Generic[R]):
    """Judges a claim from rows."""

    kind: type[R]
    holds: Callable[[Any], bool]
    """Returns whether the claim holds; called with a row or a list of rows (see `of`)."""
    ours: Callable[[list[R]], str]
    """Returns our value as text, from the rows of a variant."""
    of: Literal["row", "seed", "all"] = "row"
    """The unit to which `holds` applies: each row, all rows of a seed, or all of a variant."""
    among: Callable[[R], bool] = lambda _: True
    """Returns whether a row counts."""
    once: Callable[[list[R]], list[R]] = list
    """Chooses one of several rows of the same model, such as the longest training."""
    variant: Callable[[R], str] = lambda _: ""
    setting: Callable[[R], str] = lambda _: ""
    settings: tuple[str, ...] = ()
    """Settings that must have models."""
    model: Callable[[R], str] = lambda _: ""
    """Distinguishes models with the same setting and seed."""
    who: Callable[[R], Any] = field(default=lambda row: getattr(row, "seed", None))
    """The random unit: a model's seed."""
    first: str | None = None
    """The variant by which we read the paper (None: that of the first row)."""
    alike: Callable[[list[R]], Any] = lambda _: None
    """Variants with an equal value of this, such as the length of training, can be compared."""
    no_seeds: str = ""
    """Why the claim needs no seeds; empty if it does."""
    undecided: Callable[[list[R]], str] = lambda _: ""
    """Why these rows decide nothing; empty if they do."""
    too_small: Callable[[list[R]], str] = lambda _: ""
    """Why models for which the claim does not hold cannot refute it; empty if they can."""

    def __call__(self, rows: Sequence[ResultRow]) -> Finding:
        """Return the verdict from these rows."""
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

    def counted(self, rows: Sequence[ResultRow]) -> list[R]:
        """Return the rows that are judged, each model once, sorted by seed."""
        meant = [row for row in rows if isinstance(row, self.kind) and self.among(row)]
        return sorted(self.once(meant), key=lambda row: getattr(row, "seed", 0))

    def outcome(self, variant: str, rows: list[R]) -> Tally:
        """Return whether, and for how many models of one variant, the claim holds."""
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
            enough=bool(self.no_seeds) or seeds >= LEAST_SEEDS, drawn=not self.no_seeds,
            failed=failed,
        )  # fmt: skip

    def _finding(
        self, outcomes: list[Tally], comparable: list[str], rows: dict[str, list[R]]
    ) -> Finding:
        """Return the verdict from the outcomes of all variants."""
        first, others = outcomes[0], outcomes[1:]
        holding = [each for each in others if each.holds and self._covers(each, first, rows)]
        sure = [each for each in holding if each.enough]
        against = [each for each in others if each.variant in comparable and not each.holds]
        against = [each for each in against if each.enough]
        evidence = self._evidence(first, others, holding, against if first.holds else [])
        verdict, ours, chance = _verdict(first, holding, against), first.ours, None
        if verdict == "depends on an open choice":
            chance = self._chance(outcomes, sure or against, rows)
            if not first.holds:
                ours = f"{first.variant}: {first.ours}; {sure[0].variant}: {sure[0].ours}"
        small = self.too_small([row for own in rows.values() for row in own])
        if verdict == "not reproduced" and small:
            verdict, evidence = "needs larger models", f"{evidence}; {small}"
        return Finding(verdict, ours, evidence, tuple(outcomes), chance)

    def _covers(self, other: Tally, first: Tally, rows: dict[str, list[R]]) -> bool:
        """Return whether `other` was measured in each setting in which the first does not hold."""
        return set(first.failed) <= set(group(rows[other.variant], self.setting))

    def _evidence(
        self,
        first: Tally,
        others: list[Tally],
        holding: list[Tally],
        against: list[Tally],
    ) -> str:
        """Return the evidence as text: for the first variant, and for how many others."""
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
            words.append(f"fewer than {LEAST_SEEDS} seeds of {told}")
        if not first.enough:
            words.append(f"a verdict takes {LEAST_SEEDS} seeds, and there are {first.seeds}")
        return "; ".join(words)

    def _chance(
        self,
        outcomes: list[Tally],
        deciding: list[Tally],
        rows: dict[str, list[R]],
    ) -> float | None:
        """Return the permutation test over the variants that can be compared with the deciding one.

        None if the claim has several settings or is about all models, or with too few variants.
        """
        if self.of == "all" or any(len(group(own, self.setting)) > 1 for own in rows.values()):
            return None
        near = self.alike(rows[deciding[0].variant])
        known = [
            each.by_seed
            for each in outcomes
            if each.enough and self.alike(rows[each.variant]) == near
        ]
        return permutation_test(known) if len(known) > 1 else None


def _verdict(first: Tally, holding: Sequence[Tally], against: Sequence[Tally]) -> Verdict:
    """Return the verdict from the first variant, the others under which the claim holds, and those
    with enough seeds under which it does not.
    """
    if not first.enough:
        return "not enough seeds"
    if first.holds:
        return "depends on an open choice" if against else "reproduced"
    if any(each.enough for each in holding):
        return "depends on an open choice"
    return "not enough seeds" if holding else "not reproduced"


def group(rows: Iterable[R], key: Callable[[R], Any]) -> dict[Any, list[R]]:
    """Group rows by key, in the order in which keys first appear."""
    found: dict[Any, list[R]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found
