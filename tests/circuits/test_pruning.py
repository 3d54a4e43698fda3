"""Pruning against removing one row at a time."""

from hopscope.circuits import Ablator, exam_of, subject_of
from hopscope.circuits.pruning import pruned
from hopscope.circuits.search import Search
from hopscope.models.planted import Planted


def test_pruning_gives_up_what_the_best_single_order_would(two_hops: Planted) -> None:
    """Halving against giving up one row at a time."""
    search = Search(Ablator(subject_of(two_hops.model), exam_of(two_hops.task, 16)))
    slow = search.untouched()
    fast = pruned(search, slow, [[row] for rows in search.rows() for row in rows])
    while True:
        trials = [slow.looking_elsewhere([row], search.sources) for row in slow.live]
        losses = search.losses(trials)
        passing = [n for n, its in enumerate(losses) if search.limits.keep(its)]
        if not passing:
            break
        slow = trials[min(passing, key=lambda n: losses[n].mean())]
    assert fast == slow
