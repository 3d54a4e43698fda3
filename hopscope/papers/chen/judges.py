"""How the claims of Chen et al. are judged: over seeds, over settings, and under readings.

Each function makes a judge. A judge that misses a setting, because its table comes from the smoke
protocol, says so, and decides nothing.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from hopscope.papers.chen.rows import ChoiceRow, GrowthRow, SeedRow, SettingRow, TransferRow
from hopscope.papers.chen.settings import SETTINGS
from hopscope.papers.claim import Finding, Judge, share, share_drawn, span, verdict
from hopscope.papers.table import Table

OfSeeds = TypeVar("OfSeeds", SeedRow, TransferRow, GrowthRow)
Holds = Callable[[SettingRow], bool]
Changes = Mapping[str, Mapping[str, object]]
"""What a setting changes, by group and field."""

PAPER = "the paper's"
"""The setting of appendix B."""
NEAR = 0.02
"""Total variation to the induction head up to which a model has become one."""
SAME_LOSS = 0.01
"""Relative difference up to which two losses are the same."""
ONE_SEED = "one seed of each setting"
RULES = {"paper": "the paper's rule", "heads": "seen through the heads as they begin"}
"""Rules for who wins stage I, by their names in rows."""


def over(
    kind: type[OfSeeds],
    holds: Callable[[OfSeeds], bool],
    ours: Callable[[list[OfSeeds]], str],
    among: Callable[[OfSeeds], bool] = lambda _: True,
) -> Judge:
    """Does it hold in every row of this kind, or in those of them that are meant?"""

    def judge(tables: Sequence[Table]) -> Finding:
        rows = [row for row in tables[0].of(kind) if among(row)]
        if not rows:
            return Finding("–", "not measured", f"{tables[0].target} has no such rows")
        failed = [row for row in rows if not holds(row)]
        seeds, failing = ({row.seed for row in some} for some in (rows, failed))
        kinds = len(rows) // len(seeds)
        each = "" if kinds == 1 else f", each on {kinds} kinds of chains"
        if failing and each:
            each += f" (in {share(len(failed), len(rows))} not)"
        held = share_drawn(len(seeds) - len(failing), len(seeds), "seeds")
        evidence = f"holds in {held}{each}"
        return Finding(ours(rows), verdict(not failed), evidence)

    return judge


def every(settings: Sequence[str], holds: Holds, ours: Callable[[list[SettingRow]], str]) -> Judge:
    """Does it hold in all of these settings?"""

    def judge(rows: list[SettingRow]) -> Finding:
        failed = [row.setting for row in rows if not holds(row)]
        but = f", but not {_listed(failed)}" if failed else ""
        return Finding(ours(rows), verdict(not failed), f"{_listed(settings)}{but}; {ONE_SEED}")

    return _with(settings, judge)


def readings(named: Mapping[str, str], holds: Holds, ours: Callable[[SettingRow], str]) -> Judge:
    """Does it hold under every reading of what the paper leaves open, or under some?"""

    def judge(rows: list[SettingRow]) -> Finding:
        pairs = dict(zip(named, rows, strict=True))
        value = "; ".join(f"{name}: {ours(row)}" for name, row in pairs.items())
        held = [name for name, row in pairs.items() if holds(row)]
        left = [name for name in pairs if name not in held]
        if held and left:
            words = f"holds with {_listed(held)}; not with {_listed(left)}; {ONE_SEED}"
            return Finding(value, "under a reading", words)
        words = f"holds under {'none' if left else 'each'} of {len(pairs)} readings; {ONE_SEED}"
        return Finding(value, verdict(not left), words)

    return _with(list(named.values()), judge)


def same_place(other: str) -> Judge:
    """Does another way of training end where the paper's ends?"""

    def judge(rows: list[SettingRow]) -> Finding:
        first, second = rows
        losses = [row.loss.model for row in rows]
        same = (
            first.chosen_lags == second.chosen_lags
            and abs(losses[1] / losses[0] - 1) <= SAME_LOSS
            and second.distance <= NEAR
        )
        value = (
            f"lags {lags(second.chosen_lags)}, loss {losses[1]:.4f} (in stages "
            f"{losses[0]:.4f}), distance {second.distance:.4f} ({first.distance:.4f})"
        )
        return Finding(value, verdict(same), ONE_SEED)

    return _with((PAPER, other), judge)


def falls(settings: Sequence[str], value: Callable[[SettingRow], float], digits: int) -> Judge:
    """Does a value fall from each of these settings to the next?"""

    def judge(rows: list[SettingRow]) -> Finding:
        values = list(map(value, rows))
        falling = all(after < before for before, after in pairwise(values))
        shown = ", ".join(f"{each:.{digits}f}" for each in values)
        return Finding(shown, verdict(falling), f"{_listed(settings)}; {ONE_SEED}")

    return _with(settings, judge)


def the_rule(tables: Sequence[Table]) -> Finding:
    """Does the modified χ² information name the set that wins, in every setting?

    Where it does not, the reading is that heads copy one lag each from the start: the same setting
    with sharp heads decides.
    """
    rows = tables[0].of(SettingRow)
    sharp = {_apart_from_heads(row.changes): row for row in rows if _sharp(row.changes)}
    missed = [row for row in rows if not (_named(row, "paper") or _sharp(row.changes))]
    wrong = [
        row for row in missed if not _named(sharp.get(_apart_from_heads(row.changes)), "paper")
    ]
    wrong += [row for row in sharp.values() if not _named(row, "paper")]
    count = len(rows) - len(sharp)
    alike = sum("process" not in row.changes for row in rows)
    right = f"{share(count - len(missed), count)} settings"
    if not missed and not wrong:
        return Finding(right, verdict(bool(rows)), ONE_SEED)
    through = sum(_named(row, "heads") for row in rows)
    evidence = (
        f"{alike} of the settings have the paper's own process; missed: "
        f"{_listed([row.setting for row in missed])}; heads that begin sharp mend "
        f"{sum(row not in wrong for row in missed)} of these; the rule seen through the heads as "
        f"they begin (ours) is right in {through} of {len(rows)}; {ONE_SEED}"
    )
    if wrong:
        return Finding(right, "not reproduced", evidence)
    return Finding(f"{right}; all with sharp heads", "under a reading", evidence)


def chosen_over_seeds(tables: Sequence[Table]) -> Finding:
    """Do all seeds choose the set that the paper's rule names?

    Where they do not, the reading is the same as of `the_rule`.
    """
    rows = tables[0].of(ChoiceRow)
    if not rows:
        return Finding("–", "not measured", f"{tables[0].target} has no such rows")
    names = dict.fromkeys(row.setting for row in rows)
    settings = {name: [row for row in rows if row.setting == name] for name in names}
    right = {name: _right(own, "paper") for name, own in settings.items()}
    told = [
        f"{name}: {share_drawn(right[name], len(own), 'seeds')}" for name, own in settings.items()
    ]
    heads = f"{RULES['heads']} (ours): {share(_right(rows, 'heads'), len(rows))}"
    words = [f"{len(settings)} settings × {len({row.seed for row in rows})} seeds"]
    words += filter(None, (_chosen_instead(name, rows) for name in settings))
    evidence = "; ".join([*words, heads])
    wrong = {name for name, own in settings.items() if right[name] < len(own)}
    value = "; ".join(told)
    if not wrong:
        return Finding(value, "reproduced", evidence)
    changes = {name: SETTINGS.get(name, {}) for name in settings}
    sharp = {name for name in settings if _sharp(changes[name])}
    tried, missed = ({_apart_from_heads(changes[name]) for name in some} for some in (sharp, wrong))
    mended = not wrong & sharp and missed <= tried
    return Finding(value, "under a reading" if mended else "not reproduced", evidence)


def _right(rows: Sequence[ChoiceRow], rule: str) -> int:
    """How many of these seeds chose the set that a rule names."""
    return sum(row.predicted.get(rule) == row.chosen_lags for row in rows)


def _chosen_instead(setting: str, rows: Sequence[ChoiceRow]) -> str:
    """What won where neither rule, or not both, named it; empty where both did always."""
    own = [row for row in rows if row.setting == setting]
    if all(row.predicted.get(rule) == row.chosen_lags for row in own for rule in RULES):
        return ""
    won = Counter(lags(row.chosen_lags) for row in own)
    told = ", ".join(f"{name} in {count}" for name, count in won.most_common())
    named = " / ".join(lags(own[0].predicted.get(rule, ())) or "–" for rule in RULES)
    return f"{setting}: lags {told}; named: {named}"


def _named(row: SettingRow | None, rule: str) -> bool:
    """Did this rule name the set that won?"""
    return row is not None and row.predicted.get(rule) == row.chosen_lags


def _sharp(changes: Changes) -> bool:
    return "own" in changes.get("model", {})


def _apart_from_heads(changes: Changes) -> str:
    """What a setting changes, but for how sharp its heads begin."""
    others = {
        group: {name: value for name, value in fields.items() if name != "own"}
        for group, fields in changes.items()
    }
    others = {group: fields for group, fields in others.items() if fields}
    return json.dumps(others, sort_keys=True)


def becomes_gih(row: SettingRow) -> bool:
    """Did the parents win, and is the model their induction head?"""
    return row.chosen_lags == row.parents and row.distance <= NEAR


def _with(settings: Sequence[str], judge: Callable[[list[SettingRow]], Finding]) -> Judge:
    """Call a judge with the rows of these settings."""

    def judge_tables(tables: Sequence[Table]) -> Finding:
        rows = {row.setting: row for row in tables[0].of(SettingRow)}
        missing = [name for name in settings if name not in rows]
        if missing:
            words = f"the {tables[0].protocol} protocol leaves out: {_listed(missing)}"
            return Finding("–", "not measured", words)
        return judge([rows[name] for name in settings])

    return judge_tables


def distances(rows: Iterable[SettingRow | TransferRow]) -> str:
    """The mean distances to GIH of these rows, from the least to the greatest, in words."""
    return f"distance to GIH {span((row.distance for row in rows), 4)}"


def lags(found: Iterable[int]) -> str:
    """Lags as they are printed: `1,2`."""
    return ",".join(map(str, found))


def _listed(names: Sequence[str]) -> str:
    """Names, some of which have commas."""
    return " / ".join(names)
