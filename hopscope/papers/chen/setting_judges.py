"""How the claims of Chen et al. about other settings are judged, each over its seeds.

Each function makes a judge. A judge that misses a setting, because its table comes from the smoke
protocol, says so, and decides nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from hopscope.papers.chen.judges import NEAR, apart_from_heads, is_sharp, lags, listed
from hopscope.papers.chen.rows import SettingRow
from hopscope.papers.claim import Finding, Judge, share, share_drawn, span, verdict
from hopscope.papers.table import Table

Seeds = list[SettingRow]
"""The models of one setting, of a seed each."""
Holds = Callable[[SettingRow], bool]

PAPER = "the paper's"
"""The setting of appendix B."""
SAME_LOSS = 0.01
"""Relative difference up to which two losses are the same."""
ONE_SEED = "one seed of each setting"


def every(settings: Sequence[str], holds: Holds, ours: Callable[[list[SettingRow]], str]) -> Judge:
    """Does it hold in all of these settings, with every seed?"""

    def judge(models: list[Seeds]) -> Finding:
        failed = _failed(models, holds)
        but = f", but not {listed(failed)}" if failed else ""
        held = _held([all(map(holds, each)) for each in zip(*models, strict=True)])
        value = ours([row for own in models for row in own])
        return Finding(value, verdict(not failed), f"{listed(settings)}{but}; {held}")

    return _with(settings, judge)


def readings(named: Mapping[str, str], holds: Holds, ours: Callable[[Seeds], str]) -> Judge:
    """Does it hold under every reading of what the paper leaves open, or under some? Under a
    reading it holds if it does so with every seed.
    """

    def judge(models: list[Seeds]) -> Finding:
        pairs = dict(zip(named, models, strict=True))
        value = "; ".join(f"{name}: {ours(own)}" for name, own in pairs.items())
        held = [name for name, own in pairs.items() if all(map(holds, own))]
        left = _failed(pairs.values(), holds, names=list(pairs))
        known = [pairs[name] for name in held] or models
        seeds = _held([all(map(holds, each)) for each in zip(*known, strict=True)])
        if held and left:
            words = f"holds with {listed(held)}, not with {listed(left)}; {seeds}"
            return Finding(value, "under a reading", words)
        words = f"holds under {'none' if left else 'each'} of {len(pairs)} readings"
        return Finding(value, verdict(not left), f"{words}; {seeds}")

    return _with(list(named.values()), judge)


def same_place(other: str) -> Judge:
    """Does another way of training end where the paper's ends, with every seed?"""

    def judge(models: list[Seeds]) -> Finding:
        same = [
            first.chosen_lags == second.chosen_lags
            and abs(second.loss.model / first.loss.model - 1) <= SAME_LOSS
            and second.distance <= NEAR
            for first, second in zip(*models, strict=True)
        ]
        firsts, seconds = models
        value = (
            f"lags {_lags_of(seconds)}, loss {_losses(seconds)} (in stages {_losses(firsts)}), "
            f"distance {distance(seconds)} ({distance(firsts)})"
        )
        return Finding(value, verdict(all(same)), _held(same))

    return _with((PAPER, other), judge)


def falls(settings: Sequence[str], value: Callable[[SettingRow], float], digits: int) -> Judge:
    """Does a value fall from each of these settings to the next, with every seed?"""

    def judge(models: list[Seeds]) -> Finding:
        falling = [
            all(value(after) < value(before) for before, after in pairwise(each))
            for each in zip(*models, strict=True)
        ]
        shown = [f"{own[0].setting}: {span(map(value, own), digits)}" for own in models]
        return Finding("; ".join(shown), verdict(all(falling)), _held(falling))

    return _with(settings, judge)


def the_rule(tables: Sequence[Table]) -> Finding:
    """Does the modified χ² information name the set that wins, in every setting and with every
    seed?

    Where it does not, the reading is that heads copy one lag each from the start: the same setting
    with sharp heads decides.
    """
    models = _by_setting(tables[0])
    if not models:
        return Finding("–", "not measured", f"{tables[0].target} has no such rows")
    sharp = {
        apart_from_heads(own[0].changes): own for own in models.values() if is_sharp(own[0].changes)
    }
    plain = [own for own in models.values() if not is_sharp(own[0].changes)]
    missed = [own for own in plain if not _all_named(own, "paper")]
    wrong = [
        own
        for own in missed
        if not _all_named(sharp.get(apart_from_heads(own[0].changes), []), "paper")
    ]
    wrong += [own for own in sharp.values() if not _all_named(own, "paper")]
    alike = sum("process" not in own[0].changes for own in models.values())
    right = f"{share(len(plain) - len(missed), len(plain))} settings"
    seeds = _seeds(list(models.values()))
    if not missed and not wrong:
        return Finding(right, "reproduced", seeds)
    rows = [row for own in models.values() for row in own]
    through = sum(_named(row, "heads") for row in rows)
    evidence = (
        f"{alike} of the settings have the paper's own process; missed: "
        f"{listed(_failed(missed, lambda row: _named(row, 'paper')))}; heads that begin sharp "
        f"mend {sum(own not in wrong for own in missed)} of these; the rule seen through the "
        f"heads as they begin (ours) is right in {_drawn(through, rows)}; "
        f"{seeds}"
    )
    if wrong:
        return Finding(right, "not reproduced", evidence)
    return Finding(f"{right}; all with sharp heads", "under a reading", evidence)


def becomes_gih(row: SettingRow) -> bool:
    """Did the parents win, and is the model their induction head?"""
    return row.chosen_lags == row.parents and row.distance <= NEAR


def _named(row: SettingRow, rule: str) -> bool:
    """Did this rule name the set that won?"""
    return row.predicted.get(rule) == row.chosen_lags


def _all_named(own: Seeds, rule: str) -> bool:
    """Did it with every seed of a setting? Not if there is none."""
    return bool(own) and all(_named(row, rule) for row in own)


def _with(settings: Sequence[str], judge: Callable[[list[Seeds]], Finding]) -> Judge:
    """Call a judge with the models of these settings, of the same seeds each."""

    def judge_tables(tables: Sequence[Table]) -> Finding:
        models = _by_setting(tables[0])
        missing = [name for name in settings if name not in models]
        if missing:
            words = f"the {tables[0].protocol} protocol leaves out: {listed(missing)}"
            return Finding("–", "not measured", words)
        chosen = [models[name] for name in settings]
        if len({tuple(row.seed for row in own) for own in chosen}) > 1:
            words = f"other seeds in some settings than in others: {listed(settings)}"
            return Finding("–", "not measured", words)
        return judge(chosen)

    return judge_tables


def _by_setting(table: Table) -> dict[str, Seeds]:
    """The models of each setting, by seed."""
    found: dict[str, Seeds] = {}
    for row in table.of(SettingRow):
        found.setdefault(row.setting, []).append(row)
    return found


def _failed(models: Iterable[Seeds], holds: Holds, names: Sequence[str] | None = None) -> list[str]:
    """The settings in which it does not hold, or what they are called, and with how many seeds."""
    models = list(models)
    told = []
    for name, own in zip(names or [own[0].setting for own in models], models, strict=True):
        failing = sum(not holds(row) for row in own)
        if failing:
            told.append(name if len(own) == 1 else f"{name} ({share(failing, len(own))} seeds)")
    return told


def _drawn(count: int, rows: Sequence[SettingRow]) -> str:
    """For how many models, with an interval unless all have one seed: settings are not drawn."""
    if len({row.seed for row in rows}) > 1:
        return share_drawn(count, len(rows), "models")
    return f"{share(count, len(rows))} models"


def _held(by_seed: Sequence[bool]) -> str:
    """With how many seeds a claim holds."""
    if len(by_seed) == 1:
        return ONE_SEED
    return f"holds in {share_drawn(sum(by_seed), len(by_seed), 'seeds')}"


def _seeds(models: Iterable[Seeds]) -> str:
    """Of how many seeds each setting has models."""
    count = min(map(len, models))
    return ONE_SEED if count == 1 else f"{count} seeds of each setting"


def distance(own: Seeds) -> str:
    """The distance to GIH of the models of a setting."""
    return span((row.distance for row in own), 4)


def _losses(own: Seeds) -> str:
    return span((row.loss.model for row in own), 4)


def _lags_of(own: Seeds) -> str:
    return " / ".join(sorted({lags(row.chosen_lags) for row in own}))
