"""Painted attention against loops over positions."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from hopscope.circuits import Exam, Mechanism, aim, along, exam_of
from hopscope.circuits.mechanism import AS_IS, BY_POSITION, ITSELF, PREVIOUS, UNIFORM, Aim, Target
from hopscope.circuits.painter import Painter
from hopscope.configs import KHop, Retrieval
from hopscope.errors import CircuitError
from hopscope.facts import Role

TASKS = [Retrieval(hops=2, chains=3, dim=4), KHop(hops=2, length=12, alphabet=4)]


KEY, VALUE, QUERY = Role("key", 1), Role("value", 0), Role("query")


def is_target(target: Target, roles: list[Role], chains: list[int], row: int, key: int) -> bool:
    own = chains[row] == chains[key]
    named = roles[key] == target.role
    return {
        "own": named and own,
        "all": named,
        "others": named and not own,
        "elsewhere": not (named and own),
        "previous": key == row - 1,
        "itself": key == row,
        "uniform": True,
    }[target.where]


def slow_row(wanted: Aim, roles: list[Role], chains: list[int], row: int, last: int) -> list[float]:
    """One row of attention, or all zeros where no target can be seen."""
    weights = [0.0] * len(roles)
    for target, share in wanted.parts:
        seen = [k for k in range(last + 1) if is_target(target, roles, chains, row, k)]
        for key in seen:
            weights[key] += share / len(seen)
    total = sum(weights)
    return [weight / total for weight in weights] if total else weights


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(
    "wanted",
    [
        UNIFORM,
        ITSELF,
        PREVIOUS,
        aim("own", KEY),
        aim("all", VALUE),
        aim("others", KEY),
        aim("elsewhere", KEY),
        Aim(((Target("own", KEY), 0.75), (Target("itself"), 0.25))),
    ],
)
def test_every_aim_is_painted_as_a_loop_over_positions_would(
    task: Retrieval | KHop, causal: bool, wanted: Aim
) -> None:
    exam = exam_of(task, 3)
    rows, possible = Painter(exam, causal).rows(wanted)
    for example in range(3):
        roles = [exam.table[n] for n in exam.roles.role[example].tolist()]
        chains = exam.roles.chain[example].tolist()
        for row in range(exam.length):
            last = row if causal else exam.length - 1
            expected = slow_row(wanted, roles, chains, row, last)
            assert rows[example, row].tolist() == pytest.approx(expected, abs=1e-6)
            assert bool(possible[example, row]) == any(expected)


def with_relations(exam: Exam) -> Exam:
    """The same exam with a relation, which leads nowhere from every third position, and a
    condition.
    """
    places = torch.arange(exam.length)
    back = (places - 2).masked_fill(places % 3 == 0, -1).clamp_min(-1).expand(len(exam), -1)
    odd = (torch.arange(len(exam)) % 2 == 1)[:, None].expand(-1, exam.length)
    return replace(exam, relations={"back": back}, conditions={"odd": odd})


def led(row: int, times: int) -> int:
    """Where the relation leads, step by step."""
    for _ in range(times):
        row = -1 if row < 0 or row % 3 == 0 else max(row - 2, -1)
    return row


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_a_relation_is_followed_as_a_loop_would(task: Retrieval | KHop, times: int) -> None:
    exam = with_relations(exam_of(task, 2))
    rows, possible = Painter(exam, causal=True).rows(along("back", times))
    for row in range(exam.length):
        expected = [float(key == led(row, times)) for key in range(exam.length)]
        assert rows[0, row].tolist() == expected
        assert bool(possible[0, row]) == any(expected)


@pytest.mark.parametrize("times", [1, 2])
def test_a_set_is_followed_as_a_loop_would_and_looked_at_evenly(times: int) -> None:
    """From every third position nowhere, else to all with the same remainder, later ones too."""
    exam = exam_of(TASKS[0], 2)
    places = torch.arange(exam.length)
    leads = (places[:, None] % 3 == places % 3) & (places[:, None] % 3 > 0)
    leads[4:, 1] = False  # so that twice is not once
    leads = torch.stack((leads, torch.zeros_like(leads)))
    exam = replace(exam, relations={"alike": leads})
    rows, possible = Painter(exam, causal=True).rows(along("alike", times))
    for row in range(exam.length):
        reached = {row}
        for _ in range(times):
            reached = {
                there for here in reached for there in leads[0, here].nonzero().flatten().tolist()
            }
        seen = [place for place in sorted(reached) if place <= row]
        expected = [float(place in seen) / max(1, len(seen)) for place in range(exam.length)]
        assert rows[0, row].tolist() == pytest.approx(expected, abs=1e-6)
        assert bool(possible[0, row]) == bool(seen)
        assert bool(exam.leads("alike", times)[0, row]) == bool(reached)
    assert not possible[1].any()
    assert not rows[1].any()


def test_where_an_aim_leads_nowhere_or_its_condition_fails_the_next_is_taken() -> None:
    exam = with_relations(exam_of(TASKS[1], 4))
    wanted = along("back", 2).if_("odd").or_else(along("back"), PREVIOUS)
    rows, possible = Painter(exam, causal=True).rows(wanted)
    for example in range(4):
        for row in range(exam.length):
            tried = [led(row, 2) if example % 2 else -1, led(row, 1), row - 1]
            expected = next((place for place in tried if place >= 0), None)
            found = rows[example, row].nonzero().flatten().tolist()
            assert found == ([] if expected is None else [expected])
            assert bool(possible[example, row]) == (expected is not None)


def test_an_aim_with_others_behind_it_says_so_and_is_as_it_was_written() -> None:
    wanted = along("hop", 2).if_("2 hops").or_else(along("hop"), ITSELF)
    assert str(wanted) == "hop ×2 if 2 hops, else hop, else itself"
    assert [str(each) for each in wanted.each] == ["hop ×2 if 2 hops", "hop", "itself"]
    with pytest.raises(CircuitError, match="put all aims that come after one another in one list"):
        along("hop").or_else(wanted)
    with pytest.raises(CircuitError, match="the same under all conditions"):
        BY_POSITION.if_("2 hops")
    with pytest.raises(CircuitError, match="the target 'relation' needs a name"):
        Target("relation")
    with pytest.raises(CircuitError, match="the target 'own' takes no relation, got 'hop'"):
        Target("own", KEY, "hop")
    with pytest.raises(CircuitError, match="the target 'itself' is followed 2 times"):
        Target("itself", times=2)


def attention_of(mechanism: Mechanism, exam: Exam) -> tuple[Tensor, Tensor]:
    own = torch.rand(len(exam), exam.length, exam.length).tril()
    own = own / own.sum(-1, keepdim=True)
    return Painter(exam, causal=True).attention(mechanism, own), own


def test_a_mechanism_gives_each_role_its_aim_and_the_rest_another() -> None:
    exam = exam_of(TASKS[0], 4)
    mechanism = Mechanism(((QUERY, aim("own", VALUE)), (VALUE, AS_IS)), ITSELF)
    pattern, own = attention_of(mechanism, exam)
    painter = Painter(exam, causal=True)
    of_query, of_value = (exam.positions(role).bool() for role in (QUERY, VALUE))
    assert torch.equal(pattern[of_query], painter.rows(aim("own", VALUE))[0][of_query])
    assert torch.equal(pattern[of_value], own[of_value])
    rest = ~(of_query | of_value)
    assert torch.equal(pattern[rest], painter.rows(ITSELF)[0][rest])


def test_a_row_that_cannot_see_its_target_stays_where_it_is() -> None:
    exam = exam_of(TASKS[0], 4)  # last hop first: key 1 stands before value 0
    pattern, _ = attention_of(Mechanism(((KEY, aim("own", VALUE)),), UNIFORM), exam)
    of_key = exam.positions(KEY).bool()
    assert torch.equal(pattern[of_key], Painter(exam, causal=True).rows(ITSELF)[0][of_key])


def test_by_position_is_the_mean_over_examples() -> None:
    exam = exam_of(TASKS[0], 5)
    pattern, own = attention_of(Mechanism(rest=BY_POSITION), exam)
    assert torch.allclose(pattern[0], own.mean(0))
    assert torch.equal(pattern[0], pattern[4])


def test_by_place_is_the_mean_over_examples_that_agree_on_the_place() -> None:
    exam = exam_of(TASKS[0], 40)
    pattern, own = attention_of(Mechanism(rest=aim("place", VALUE)), exam)
    row = exam.length - 1
    chain = exam.roles.chain
    there = exam.positions(VALUE).bool() & (chain == chain[:, row, None])
    places = there.byte().argmax(-1)
    for place in places.unique():
        agree = places == place
        assert torch.allclose(pattern[agree, row], own[agree, row].mean(0), atol=1e-6)


@given(st.sampled_from(["own", "all", "others", "elsewhere"]), st.booleans())
@settings(max_examples=8, deadline=None)
def test_rows_of_attention_add_up_to_one(where: str, causal: bool) -> None:
    rows, possible = Painter(exam_of(TASKS[1], 2), causal).rows(aim(where, KEY))  # type: ignore[arg-type]
    assert torch.allclose(rows.sum(-1), possible.float(), atol=1e-6)


def test_fewer_rows_are_the_last_ones() -> None:
    exam = exam_of(TASKS[0], 2)
    whole, own = attention_of(Mechanism(((QUERY, aim("own", VALUE)),)), exam)
    read = Painter(exam, causal=True).attention(
        Mechanism(((QUERY, aim("own", VALUE)),)), own[:, -3:]
    )
    assert torch.equal(read, whole[:, -3:])
