"""Tables of mean attention: against loops, and on which examples they are estimated."""

from dataclasses import replace

import pytest
import torch
from slow import scaled

from hopscope.circuits import (
    Ablator,
    CallbackModel,
    Source,
    adapter_of,
    discover,
    estimate_tables,
    examples_of,
    patterns,
    table_of,
)
from hopscope.circuits.ablation import Ablation
from hopscope.circuits.prescriber import Prescriber
from hopscope.circuits.search import Search
from hopscope.circuits.tables import TABLE_DIGITS, tables_of
from hopscope.configs import KHop, Model
from hopscope.errors import CircuitError
from hopscope.facts import Role
from hopscope.models import Transformer

TASK = KHop(hops=1, length=7, alphabet=3)


def model_of(causal: bool) -> Transformer:
    config = Model(layers=2, heads=2, d_model=8, init="fan-in", causal=causal)
    return scaled(Transformer.seeded(config, TASK.interface(), 0), 3)  # type: ignore[no-any-return]


@pytest.mark.parametrize("causal", [True, False])
def test_tables_are_means_over_examples_positions_and_pairs_of_tokens(causal: bool) -> None:
    adapter, examples = adapter_of(model_of(causal)), examples_of(TASK, 4)
    tables, tokens = estimate_tables(adapter, examples), examples.inputs.tolist()
    for layer, attention in enumerate(patterns(adapter, examples.inputs)):
        for head in range(2):
            own = attention[:, head]
            by_position = tables[Source("position", head=(layer, head))]
            assert torch.allclose(by_position, own.mean(0), atol=0.51 * 10**-TABLE_DIGITS)
            pairs: dict[tuple[int, int], list[float]] = {}
            for example in range(4):
                for row in range(examples.length):
                    for key in range(row + 1 if causal else examples.length):
                        both = tokens[example][row], tokens[example][key]
                        pairs.setdefault(both, []).append(float(own[example, row, key]))
            by_token = tables[Source("token", head=(layer, head))]
            for both, shares in pairs.items():
                wanted = sum(shares) / len(shares)
                assert float(by_token[both]) == pytest.approx(wanted, abs=0.51 * 10**-TABLE_DIGITS)


def test_tables_are_the_same_a_few_examples_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, examples = adapter_of(model_of(causal=True)), examples_of(TASK, 10)
    whole = estimate_tables(adapter, examples)
    monkeypatch.setattr("hopscope.circuits.budget.CALL_BYTES", 4096)  # three examples at a time
    parts = estimate_tables(adapter, examples)
    assert parts.keys() == whole.keys()
    for source, table in whole.items():
        assert torch.allclose(parts[source], table, atol=1.01 * 10**-TABLE_DIGITS), source


def test_tables_that_the_machine_cannot_hold_are_refused_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = KHop(hops=1, length=7, alphabet=500)
    model = Transformer.seeded(Model(layers=2, heads=2, d_model=8), task.interface(), 0)
    monkeypatch.setattr("hopscope.circuits.budget.memory_bytes", lambda: 2**21)
    with pytest.raises(CircuitError, match="a search, with tables for all heads, .*fewer diff"):
        discover(model, task, examples=2, fresh=2, force=True)


def test_tables_are_rounded_in_place() -> None:
    """The tables of all heads are in memory once: no operation returns all of them again."""
    adapter, examples = adapter_of(model_of(causal=True)), examples_of(TASK, 4)
    with torch.profiler.profile() as profile:
        estimate_tables(adapter, examples)
    assert "aten::round" not in {event.key for event in profile.key_averages()}


def test_a_token_that_is_new_to_a_table_attends_to_itself_and_gets_nothing() -> None:
    source = Source("token", head=(0, 0))
    examples = examples_of(TASK, 2)
    tokens = torch.tensor([[0, 1, 2], [1, 0, 1]])  # 2 is new
    roles = replace(
        examples.roles, role=examples.roles.role[:, :3], chain=examples.roles.chain[:, :3]
    )
    examples = replace(
        examples, inputs=tokens, roles=roles, tables={source: torch.full((2, 2), 0.5)}
    )
    prescriber = Prescriber(examples, causal=True)
    rows, _ = prescriber.drawn(table_of("token", (0, 0)), prescriber.spots(None, 3))
    rows = rows.unflatten(0, (2, 3))
    assert rows[0, 1].tolist() == [0.5, 0.5, 0]
    assert rows[0, 2].tolist() == [0, 0, 0]  # nothing is seen, so that it stays where it is
    assert rows[1, 2].tolist() == pytest.approx([1 / 3] * 3)


def test_a_table_knows_nothing_of_the_examples_that_it_is_measured_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A circuit's tables are those of the search's examples, however many others follow; with them
    it has the losses that were measured.
    """
    model, role = model_of(causal=True), Role("query")
    adapter = adapter_of(model)

    def written(search: Search) -> Ablation:
        state = search.nothing
        for head, by in (((0, 1), "position"), ((1, 0), "token"), ((1, 1), "position")):
            rows = [(head, its) for its in (TASK.roles() if head[0] == 0 else [role])]
            state = state.looking_at(rows, table_of(by, head))  # type: ignore[arg-type]
        return state

    monkeypatch.setattr("hopscope.circuits.discovery.searched", written)
    one, other = (
        discover(model, TASK, examples=24, fresh=fresh, seed=3, force=True) for fresh in (8, 16)
    )
    assert one.tables == other.tables
    assert len(one.tables) == 3
    expected = estimate_tables(adapter, examples_of(TASK, 24, 3, "search"))
    kept = tables_of(one)
    assert all(torch.equal(table, expected[source]) for source, table in kept.items())

    fresh = replace(examples_of(TASK, 8, 3, "measurement"), tables=kept)
    losses = Ablator(model, fresh).losses([one.ablation()]).mean((0, 1)).tolist()
    assert losses == pytest.approx(one.losses.prescribed, abs=1e-6)


def test_tokens_may_be_of_any_width_and_numbers_below_zero_are_none() -> None:
    source, examples = Source("token", head=(0, 0)), examples_of(TASK, 4)
    adapter = adapter_of(model_of(causal=True))
    tables = estimate_tables(adapter, examples)
    rows = []
    for dtype in (torch.long, torch.int16, torch.uint8):
        narrow = replace(examples, inputs=examples.inputs.to(dtype), tables=tables)
        prescriber = Prescriber(narrow, causal=True)
        rows.append(prescriber.drawn(table_of("token", (0, 0)), prescriber.spots(None, 7))[0])
    assert torch.equal(rows[0], rows[1])
    assert torch.equal(rows[0], rows[2])
    whole = CallbackModel(
        lambda tokens, attention: adapter.model(tokens.abs(), attention=attention),
        adapter.module,
        (2, 2),
    )
    assert source in estimate_tables(whole, examples)
    assert source not in estimate_tables(whole, replace(examples, inputs=-examples.inputs))
