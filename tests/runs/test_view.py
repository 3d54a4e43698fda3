"""What every run shows, without a class of its kind."""

from hopscope.configs import Experiment
from hopscope.runs import train
from hopscope.runs.view import PlainRun
from hopscope.store import Store
from hopscope.training import Run


def test_a_plain_view_shows_what_the_kind_s_own_shows(store: Store, tiny: Experiment) -> None:
    own: Run = train(tiny, store)
    plain = PlainRun(own.folder)
    assert plain.name == own.name
    assert plain.recipe == own.recipe
    assert plain.checkpoints == own.checkpoints
    for split in ("train", "validation"):
        mine, its = plain.losses(split), own.losses(split)
        assert mine[0].tolist() == its[0].tolist()
        assert mine[1].tolist() == its[1].tolist()
