"""What discovery knows of a model before it searches."""

from collections.abc import Sequence

import numpy as np
import pytest

from hopscope.circuits import Ablator, exam_of, subject_of
from hopscope.circuits.mechanism import ITSELF, UNIFORM, Aim
from hopscope.circuits.search import Search
from hopscope.circuits.state import State
from hopscope.configs import KHop, Model
from hopscope.models import Transformer


class Priced(Search):
    """A model in which heads that look everywhere cost 1, and those that stay `itself`."""

    itself = 1.0

    def losses(self, states: Sequence[State], roughly: bool = False) -> np.ndarray:
        rests = [next(iter(state.mechanisms.values())).rest for state in states]
        return np.array([[1.0 if rest == UNIFORM else self.itself] for rest in rests])


@pytest.mark.parametrize(("itself", "rest"), [(1.0, UNIFORM), (0.96, UNIFORM), (0.95, ITSELF)])
def test_heads_without_work_look_everywhere_unless_staying_is_clearly_better(
    ablator: Ablator, itself: float, rest: Aim
) -> None:
    search = Priced(ablator)
    search.itself = itself
    assert {mechanism.rest for mechanism in search.untouched().mechanisms.values()} == {rest}


def test_rows_of_the_last_layer_that_nobody_reads_are_left_out() -> None:
    task = KHop(hops=2, length=8, alphabet=3)
    model = Transformer.seeded(Model(layers=2, heads=1, d_model=8), task.interface(), 0)
    search = Search(Ablator(subject_of(model), exam_of(task, 8)))
    assert search.readers_of(0) == search.ablator.exam.table
    assert [str(role) for role in search.readers_of(1)] == ["query"]
