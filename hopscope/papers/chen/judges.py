"""How the claims of Chen et al. are judged over seeds: of their own setting, and of who wins."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from hopscope.papers.chen.rows import ChoiceRow, GrowthRow, SeedRow, SettingRow, TransferRow
from hopscope.papers.chen.settings import SETTINGS
from hopscope.papers.claim import Finding, Judge, share, share_drawn, span, verdict
from hopscope.papers.table import Table

OfSeeds = TypeVar("OfSeeds", SeedRow, TransferRow, GrowthRow)
Changes = Mapping[str, Mapping[str, object]]
"""What a setting changes, by group and field."""

NEAR = 0.02
"""Total variation to the induction head up to which a model has become one."""
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


def chosen_over_seeds(tables: Sequence[Table]) -> Finding:
    """Do all seeds choose the set that the paper's rule names?

    Where they do not, the reading is that heads copy one lag each from the start: the same setting
    with sharp heads decides.
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
    through = share_drawn(_right(rows, "heads"), len(rows), "models")
    heads = f"the rule {RULES['heads']} (ours): {through}"
    words = [f"{len(settings)} settings × {len({row.seed for row in rows})} seeds"]
    words += filter(None, (_chosen_instead(name, rows) for name in settings))
    evidence = "; ".join([*words, heads])
    wrong = {name for name, own in settings.items() if right[name] < len(own)}
    value = "; ".join(told)
    if not wrong:
        return Finding(value, "reproduced", evidence)
    changes = {name: SETTINGS.get(name, {}) for name in settings}
    sharp = {name for name in settings if is_sharp(changes[name])}
    tried, missed = ({apart_from_heads(changes[name]) for name in some} for some in (sharp, wrong))
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
    named = ", ".join(
        f"{lags(own[0].predicted.get(rule, ())) or 'none'} ({words})"
        for rule, words in RULES.items()
    )
    return f"{setting}: lags {told}, where the winner named is {named}"


def is_sharp(changes: Changes) -> bool:
    return "own" in changes.get("model", {})


def apart_from_heads(changes: Changes) -> str:
    """What a setting changes, but for how sharp its heads begin."""
    others = {
        group: {name: value for name, value in fields.items() if name != "own"}
        for group, fields in changes.items()
    }
    others = {group: fields for group, fields in others.items() if fields}
    return json.dumps(others, sort_keys=True)


def distances(rows: Iterable[SettingRow | TransferRow]) -> str:
    """The mean distances to GIH of these rows, from the least to the greatest, in words."""
    return f"distance to GIH {span((row.distance for row in rows), 4)}"


def lags(found: Iterable[int]) -> str:
    """Lags as they are printed: `1,2`."""
    return ",".join(map(str, found))


def listed(names: Sequence[str]) -> str:
    """Names, some of which have commas."""
    return " / ".join(names)
