"""Summaries of the losses of many runs, for `hopscope runs`.

Reading all losses of a thousand runs takes a second. So the summaries are cached in a file of the
store, each with a hash of the losses that it was made from. Entries with another hash are made
again; in an unwritable store nothing is cached.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hopscope.configs.training import FINAL_STEPS
from hopscope.errors import StoreError
from hopscope.store.files import read_inside, sha256, write_inside
from hopscope.store.folder import RunFolder
from hopscope.store.query import SqlQuery, read_runs
from hopscope.store.tables import METRICS

CACHE = ".summaries.json"
MOST_BYTES = 2**28
"""Largest size of a cache that is read, in bytes."""
SUMMARY_POINTS = 64
"""Number of points of a loss curve."""
QUERY = f"""
with
    train as (from metrics where split = 'train'),
    ends as (select run, max(step) as last from train group by run),
    final as (
        select run, hop, avg(loss) as loss from train join ends using (run)
        where step >= least(greatest(1, last - {FINAL_STEPS - 1}), last) group by all
    ),
    courses as (
        select run, step * {SUMMARY_POINTS} // (last + 1) as part, avg(loss) as loss
        from train join ends using (run) group by all
    )
select
    run,
    (select list(round(loss, 6) order by hop) from final where final.run = ends.run),
    (select list(round(loss, 6) order by part) from courses where courses.run = ends.run)
from ends
"""
Summary = tuple[list[float], list[float]]
"""The training losses of a run: the mean over its last 100 steps for each hop; and the curve of the
mean over all hops, with at most `SUMMARY_POINTS` points."""
ENTRIES = TypeAdapter(dict[str, tuple[str, Summary]])


def summaries(root: Path, folders: Sequence[RunFolder]) -> tuple[dict[str, Summary], list[str]]:
    """Return the summary of each run that has losses, and a line for each unreadable run."""
    entries = _cached(root)
    hashes = {each.name: _hash(each) for each in folders if each.files(f"{METRICS.name}/")}
    cached = {name: entry for name, entry in entries.items() if hashes.get(name) == entry[0]}
    new = [each for each in folders if each.name in hashes.keys() - cached.keys()]
    problems: tuple[str, ...] = ()
    if new:
        runs = partial(read_runs, [each.path for each in new])
        answer = SqlQuery(QUERY, runs, twice=True).answer()
        problems = answer.problems
        cached |= {name: (hashes[name], (last, course)) for name, last, course in answer.rows}
        kept = {name: entry for name, entry in entries.items() if (root / name).exists()}
        with suppress(StoreError):
            write_inside(root, {CACHE: json.dumps(kept | cached).encode()})
    return {name: summary for name, (_, summary) in cached.items()}, [*problems]


def _hash(folder: RunFolder) -> str:
    """Return a hash of the losses of a run and of the query."""
    return sha256("".join([QUERY, *folder.hashes(f"{METRICS.name}/")]).encode())


def _cached(root: Path) -> dict[str, tuple[str, Summary]]:
    try:
        return ENTRIES.validate_json(read_inside(root, CACHE, MOST_BYTES))
    except (StoreError, ValidationError):
        return {}
