"""Role maps against sums over pairs of positions."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from hopscope.circuits import (
    Exam,
    RoleMaps,
    attention_maps,
    discover,
    exam_of,
    patterns,
    role_maps,
    subject_of,
)
from hopscope.configs import KHop, Model
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import Planted


def slow_maps(model: Transformer, exam: Exam) -> dict[str, torch.Tensor]:
    pattern = model.attention(exam.inputs)
    roles, chains = exam.roles.role, exam.roles.chain
    size = len(exam.table)
    shape = (*pattern.shape[:1], pattern.shape[2], size)
    found = {"own": torch.zeros(*shape, size), "others": torch.zeros(*shape, size)}
    found |= {"itself": torch.zeros(shape), "previous": torch.zeros(shape)}
    names = [(name, times) for name in exam.relations for times in (1, 2)]
    found |= {f"{name} ×{times}": torch.zeros(shape) for name, times in names}
    led = {f"{name} ×{times}": torch.zeros(size) for name, times in names}
    count = torch.zeros(size)
    for example in range(len(roles)):
        for row, reader in enumerate(roles[example].tolist()):
            count[reader] += 1
            for name, times in names:
                if there := slow_steps(exam.relations[name][example], row, times):
                    seen = pattern[:, example, :, row, list(there)].sum(-1)
                    found[f"{name} ×{times}"][:, :, reader] += seen
                    led[f"{name} ×{times}"][reader] += 1
            for key, source in enumerate(roles[example].tolist()):
                weight = pattern[:, example, :, row, key]
                same = chains[example, row] == chains[example, key]
                found["own" if same else "others"][:, :, reader, source] += weight
                if key == row:
                    found["itself"][:, :, reader] += weight
                if key == row - 1:
                    found["previous"][:, :, reader] += weight
    shares = {n: t / (count[:, None] if t.ndim == 4 else count) for n, t in found.items()}
    return shares | {name: found[name] / times for name, times in led.items()}


def slow_steps(leads: torch.Tensor, row: int, times: int) -> set[int]:
    """Where a relation of one example leads from a row: to a position, or to a set."""
    here = {row}
    for _ in range(times):
        if leads.ndim == 1:
            here = {int(leads[place]) for place in here} - {-1}
        else:
            here = {key for place in here for key in leads[place].nonzero()[:, 0].tolist()}
    return here


@pytest.mark.parametrize("kind", ["vectors", "tokens"])
def test_maps_are_means_over_pairs_of_positions(
    random_model: Transformer, two_hops: Planted, kind: str
) -> None:
    tokens = KHop(hops=2, length=9, alphabet=3)
    task, model = two_hops.task, random_model
    if kind == "tokens":
        model = Transformer.seeded(Model(layers=2, heads=2, d_model=8), tokens.interface(), 0)
    exam = exam_of(tokens if kind == "tokens" else task, 5)
    found, expected = role_maps(subject_of(model), exam), slow_maps(model, exam)
    for name, values in expected.items():
        assert np.allclose(getattr(found, name), values, atol=1e-5, equal_nan=True), name


def test_maps_along_relations_are_means_over_where_they_lead(
    random_model: Transformer, two_hops: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    exam = exam_of(two_hops.task, 5)
    back = torch.arange(exam.length).expand(exam.roles.role.shape) - 2
    alike = exam.roles.chain[:, :, None] == exam.roles.chain[:, None]
    exam = replace(exam, relations={"back": back.clamp_min(-1), "alike": alike.tril(-1)})
    expected = slow_maps(random_model, exam)
    monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", 1)  # one example at a time
    maps = role_maps(subject_of(random_model), exam)
    for name, times in exam.follows():
        shown = name if times == 1 else f"{name} ×{times}"
        if times <= 2:
            wanted = expected[f"{name} ×{times}"]
            assert np.allclose(maps.along[shown], wanted, atol=1e-5, equal_nan=True), shown
    assert {"back", "back ×2", "alike", "alike ×2"} <= {*maps.along}
    kept = RoleMaps.from_dict(maps.to_dict())
    assert np.array_equal(kept.along["alike ×2"], maps.along["alike ×2"], equal_nan=True)


def test_rows_of_a_map_add_up_to_one(random_model: Transformer, two_hops: Planted) -> None:
    maps = attention_maps(random_model, two_hops.task, examples=8)
    assert np.allclose((maps.own + maps.others).sum(-1), 1, atol=1e-5)


def test_a_planted_path_is_all_that_its_row_sees(two_hops: Planted) -> None:
    maps = attention_maps(two_hops.model, two_hops.task, examples=8)
    for path in two_hops.paths:
        reader, source = maps.roles.index(path.reader), maps.roles.index(path.source)
        assert maps.own[path.layer, path.head, reader, source] == pytest.approx(1, abs=1e-4)


def test_patterns_come_layer_by_layer(random_model: Transformer, two_hops: Planted) -> None:
    inputs = exam_of(two_hops.task, 3).inputs
    found = torch.stack(list(patterns(subject_of(random_model), inputs)))
    assert torch.equal(found, random_model.attention(inputs))


def test_a_role_that_never_occurs_has_no_attention() -> None:
    task = KHop(hops=2, length=2, alphabet=9)  # two tokens: no second hop can be found
    model = Transformer.seeded(Model(layers=1, heads=1, d_model=4), task.interface(), 0)
    maps = attention_maps(model, task, examples=4)
    number = maps.roles.index(Role("value", 1))
    assert math.isnan(maps.own[0, 0, number, number])


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_attention_that_is_no_number_is_refused(two_hops: Planted, bad: float) -> None:
    model = Transformer(two_hops.model.config, two_hops.model.interface)
    model.load_state_dict(two_hops.model.state_dict())
    with torch.no_grad():
        model.blocks[1].attention.query.weight[0, 0] = bad  # type: ignore[union-attr, index]
    message = "the attention of layer 1 is not a finite number everywhere: the weights are damaged"
    with pytest.raises(CircuitError, match=message):
        attention_maps(model, two_hops.task, examples=2)
    with pytest.raises(CircuitError, match=message):
        discover(model, two_hops.task, examples=2)
