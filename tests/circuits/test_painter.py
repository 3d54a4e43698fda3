"""Attention that a mechanism prescribes, as shown and as measured, against loops over positions."""

from dataclasses import replace

import pytest
import torch
from slow import slow_attention

from hopscope.circuits import Ablation, Exam, Mechanism, along, exam_of, patterns, subject_of
from hopscope.circuits.attended import attended
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM, Aim, Target
from hopscope.circuits.mechanism import aim as at
from hopscope.configs import KHop, Model, Retrieval
from hopscope.facts import Role
from hopscope.models import Transformer

TASKS = [Retrieval(hops=2, chains=3, dim=4), KHop(hops=2, length=12, alphabet=4)]
KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")
MIXED = Aim(((Target("own", KEY), 0.75), (Target("itself"), 0.25)))
MECHANISMS = [
    *(Mechanism(rest=rest) for rest in (UNIFORM, ITSELF, PREVIOUS, BY_POSITION, AS_IS, MIXED)),
    *(Mechanism(rest=at(where, KEY)) for where in ("own", "all", "others", "elsewhere", "place")),
    *(Mechanism(rest=along("back", times)) for times in (1, 2, 3)),
    *(Mechanism(rest=along("alike", times)) for times in (1, 2)),
    Mechanism(rest=along("back", 2).if_("odd").or_else(along("back"), PREVIOUS)),
    Mechanism(((QUERY, at("own", VALUE)), (VALUE, AS_IS)), ITSELF),
    Mechanism(((KEY, at("own", VALUE)), (QUERY, at("place", VALUE))), UNIFORM),
    Mechanism(((QUERY, UNIFORM),), AS_IS),
]


def with_relations(exam: Exam) -> Exam:
    """The same exam with a relation to a position, one to a set, and a condition. The first leads
    nowhere from every third position; the second from the first example's positions alone, to all
    with the same remainder, later ones too.
    """
    places = torch.arange(exam.length)
    back = (places - 2).masked_fill(places % 3 == 0, -1).clamp_min(-1).expand(len(exam), -1)
    alike = (places[:, None] % 3 == places % 3) & (places[:, None] % 3 > 0)
    alike[4:, 1] = False  # so that twice is not once
    alike = torch.stack((alike, *[torch.zeros_like(alike)] * (len(exam) - 1)))
    odd = (torch.arange(len(exam)) % 2 == 1)[:, None].expand(-1, exam.length)
    return replace(exam, relations={"back": back, "alike": alike}, conditions={"odd": odd})


@pytest.mark.parametrize("task", TASKS, ids=["vectors", "tokens"])
@pytest.mark.parametrize("causal", [True, False])
def test_every_mechanism_is_painted_as_a_loop_over_positions_would(
    task: Retrieval | KHop, causal: bool
) -> None:
    """Each head of a layer follows another one."""
    count = len(MECHANISMS)
    config = Model(layers=1, heads=count, d_model=2 * count, init="fan-in", causal=causal)
    model = Transformer.seeded(config, task.interface(), 0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    subject, exam = subject_of(model), with_relations(exam_of(task, 5))
    (own,) = patterns(subject, exam.inputs)
    ablation = Ablation.of({(0, head): its for head, its in enumerate(MECHANISMS)})
    found = attended(subject, exam, ablation).patterns[0]  # type: ignore[arg-type]
    for head, mechanism in enumerate(MECHANISMS):
        expected = slow_attention(mechanism, exam, own[:, head], causal)
        assert torch.allclose(found[:, head], expected, atol=1e-6), str(mechanism)
    assert torch.allclose(found.sum(-1), torch.ones(found.shape[:-1]), atol=1e-5)
