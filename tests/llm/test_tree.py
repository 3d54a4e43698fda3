"""Answers as a tree: shared beginnings once, and every token sees what it would see alone."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hopscope.llm.tree import Tree, planted, sequence_logs

sequences = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=1, max_size=6)


def grown(several: list[list[int]]) -> Tree:
    tree = Tree()
    for sequence in several:
        tree.add(sequence)
    return tree


@given(sequences)
def test_every_beginning_has_one_node_and_the_way_to_it_spells_it(several: list[list[int]]) -> None:
    tree = grown(several)
    beginnings = {tuple(each[:n]) for each in several for n in range(1, len(each) + 1)}
    assert set(tree.ends) == beginnings
    assert len(tree.tokens) == len(beginnings)
    for sequence, node in tree.ends.items():
        assert tuple(tree.tokens[n] for n in reversed(tree.above(node))) == sequence


@given(sequences, st.integers(1, 3), st.integers(0, 2))
def test_a_token_sees_the_prompt_and_what_is_before_it_in_its_own_answer(
    several: list[list[int]], length: int, before: int
) -> None:
    tree = grown(several)
    batch = planted([[5] * length, [6] * (length + 2)], [tree, tree], before)
    longest = length + 2
    for row, own in enumerate((length, longest)):
        for sequence, node in tree.ends.items():
            sees = batch.sees[row, longest + node]
            assert sees[:before].all()  # what all have in common
            mine = sees[before:]
            assert int(mine[:longest].sum()) == own
            seen = [n for n in range(len(tree.tokens)) if mine[longest + n]]
            assert sorted(seen) == sorted(tree.above(node))
            assert int(batch.places[row, longest + node]) == before + own + len(sequence) - 1


def test_no_row_of_the_mask_is_without_anything_to_see() -> None:
    batch = planted([[1], [1, 2, 3]], [grown([[4]]), grown([[4], [5]])])
    mask = batch.mask(torch.float32)
    assert ((mask == 0).sum(-1) > 0).all()
    assert (mask[~batch.sees[:, None]] == torch.finfo(torch.float32).min).all()


def test_a_sequence_has_the_product_of_its_steps_and_any_stop() -> None:
    tree = grown([[1, 2], [1, 0]])
    logs = torch.log_softmax(torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), -1)
    chances = logs.exp().double()
    expected = chances[0, 1] * chances[1, 2] * (chances[2, 0] + chances[2, 1])
    found = sequence_logs(tree, logs, [1, 2], [0, 1])
    assert found == pytest.approx(float(expected.log()), abs=1e-6)
