"""Contents as a figure and in words: a bar for each symbol that is held, and who brings it."""

from dataclasses import replace

import numpy as np
import pytest

from hopscope.configs import KHop, Model, Retrieval
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted, planted
from hopscope.report.contents import (
    brought_rows,
    contents_figure,
    contents_remarks,
    contents_rows,
)
from hopscope.tracing.reading import contents


@pytest.fixture(scope="module")
def known() -> Planted:
    task = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
    return planted(task, twins=True, spare_layers=[1])


def test_contents_have_a_bar_for_each_symbol_that_is_held(known: Planted) -> None:
    found = contents(known.model, known.task, 80)
    bars = [p for p in contents_figure(found).axes[0].patches if p.get_width() < 0.5]
    held = np.nan_to_num(found.stream.own) > 0.03
    assert len(bars) == held.sum()
    columns, rows = contents_rows(found)
    assert columns == ["after", "q", "k0", "v0", "k1", "v1"]
    assert rows[0][:2] == ["layer 3", "x0 x1 x2"]
    assert rows[-1] == ["input", "x0", "x0", "x1", "x1", "x2"]
    # Twins bring the same; what a role holds already, it is not brought.
    assert ("0.0", "value 0", "x0 1.00") in brought_rows(found)
    assert ("0.1", "value 0", "x0 1.00") in brought_rows(found)
    assert not any(row[2].startswith("x0") for row in brought_rows(found) if row[1] == "query")


def test_roles_of_a_task_of_ones_own_are_shown_too(known: Planted) -> None:
    found = contents(known.model, known.task, 80)
    named = tuple(Role("letter", r.fact) if r.kind == "value" else r for r in found.roles)
    own = replace(found, roles=named)
    assert contents_rows(own)[0] == ["after", "q", "k0", "l", "k1", "l1"]
    assert [row[1:] for row in contents_rows(own)[1]] == [
        row[1:] for row in contents_rows(found)[1]
    ]
    bars, of_ours = (len(contents_figure(each).axes[0].patches) for each in (own, found))
    assert bars == of_ours


def test_an_untrained_model_is_said_to_guess(known: Planted) -> None:
    fresh = Transformer.seeded(known.model.config, known.model.interface, 0)
    said = "\n".join(contents_remarks(contents(fresh, known.task, 80)))
    assert "this model answers at guessing level (loss" in said
    tokens = KHop(hops=1, length=9, alphabet=3)
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=8), tokens.interface(), 0)
    found = contents(model, tokens, 40)
    assert brought_rows(replace(found, heads=None)) == []
    assert "of another chain" not in "\n".join(contents_remarks(found))
    nowhere = replace(found, stream=replace(found.stream, own=found.stream.own * np.nan))
    assert "in no chain of these examples: key 0, value 0, query" in contents_remarks(nowhere)[-1]
