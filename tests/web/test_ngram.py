"""The n-gram experiment on the page: its parameters."""

import numpy as np

from hopscope.ngram.parameters import sets, softmax
from hopscope.ngram.process import sample_chains
from hopscope.ngram.run import NgramRun
from hopscope.store import gallery
from hopscope.web.tensors import unpacked
from hopscope.web.views import Views

NGRAM = "gallery-ngram"


def test_all_parameters_are_there_at_every_epoch(views: Views) -> None:
    """And what the model makes of them; with the begin of a chain."""
    run = NgramRun(gallery.find("ngram"))
    arrays, told = unpacked(views.shown(NGRAM).arrays("parameters"))
    course = run.course(0)
    np.testing.assert_array_equal(arrays["epochs"], course.epochs)
    for name in ("c", "w", "a", "shares"):
        np.testing.assert_allclose(arrays[name], getattr(course, name), rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(arrays["copied"], softmax(course.w), rtol=1e-6)
    assert [tuple(heads) for heads in told["sets"]] == sets(run.recipe.model)
    (chain,) = sample_chains(run.recipe.process, 1, 0, "validation").tokens
    assert arrays["sequence"].tolist() == chain[:36].tolist()
