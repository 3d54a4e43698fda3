"""Means in place of what heads bring: against the same row by row."""

import pytest
import torch

from hopscope.circuits import Subject, budget, exam_of, subject_of
from hopscope.circuits.carrying import Site
from hopscope.configs import Discovery, Model, Retrieval
from hopscope.facts import Role
from hopscope.models import Transformer
from hopscope.models.planted import planted
from hopscope.tracing.averaging import averaged

TASK = Retrieval(hops=2, chains=2, dim=6, symbols="one-hot")
READERS = (Role("value", 0), Role("query"))


def walked(subject: Subject) -> Subject:
    assert isinstance(subject, Subject)
    return subject


@pytest.fixture(scope="module")
def subject() -> Subject:
    torch.manual_seed(0)
    shape = Model(layers=2, heads=2, d_model=16)
    model = Transformer(shape, TASK.interface())
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.3)
    return walked(subject_of(model))  # type: ignore[arg-type]


def by_hand(subject: Subject, site: Site, *, places: bool) -> float:
    """One example and position after the other."""
    exam = exam_of(TASK, 12)
    x = subject.enter(exam.inputs)
    for layer in range(subject.layers):
        mixed = subject.look(layer, x, x.shape[1], range(subject.heads)) @ subject.values(layer, x)
        new = mixed.clone()
        for example in range(12) if layer == site.layer else ():
            for at in range(exam.length):
                role = exam.table[int(exam.roles.role[example, at])]
                if role in site.readers:
                    alike = [
                        (e, p)
                        for e in range(12)
                        for p in range(exam.length)
                        if exam.table[int(exam.roles.role[e, p])] == role
                        and (not places or p == at)
                    ]
                    for head in site.heads:
                        its = torch.stack([mixed[e, head, p] for e, p in alike]).mean(0)
                        new[example, head, at] = its
        x = subject.write(layer, x, new)
    return float(exam.marks(subject.leave(x)).mean())


@pytest.mark.parametrize("layer", [0, 1])
def test_means_by_place_and_by_role_are_those_by_hand(
    subject: Subject, layer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(layer=layer, heads=(1,), readers=READERS)
    with torch.no_grad():
        place, role = (by_hand(subject, site, places=places) for places in (True, False))
    (its,) = averaged(subject, exam_of(TASK, 12), [site], Discovery())
    assert its.by_place.mean == pytest.approx(place, abs=1e-6)
    assert its.by_role.mean == pytest.approx(role, abs=1e-6)
    assert its.clean.mean != pytest.approx(its.by_role.mean, abs=1e-6)
    monkeypatch.setattr(budget, "CALL_BYTES", 1)  # example by example
    (again,) = averaged(subject, exam_of(TASK, 12), [site], Discovery())
    assert again.by_place.mean == pytest.approx(place, abs=1e-6)


def test_a_head_that_carries_symbols_brings_neither_its_place_nor_a_constant() -> None:
    grown = planted(TASK)
    sites = [Site(layer=p.layer, heads=(p.head,), readers=(p.reader,)) for p in grown.paths]
    whole = walked(subject_of(grown.model))  # type: ignore[arg-type]
    found = averaged(whole, exam_of(TASK, 32), sites, Discovery())
    assert [its.brings for its in found] == ["symbols"] * len(sites)
    assert averaged(whole, exam_of(TASK, 4), [], Discovery()) == ()
