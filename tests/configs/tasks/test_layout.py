"""Shapes from arithmetic, against shapes counted entry by entry."""

from hypothesis import given
from hypothesis import strategies as st

from hopscope.configs import ConditionalRetrieval, Induction, Retrieval, VectorTask

vector_tasks = st.one_of(
    st.builds(Retrieval, hops=st.integers(1, 6), chains=st.integers(1, 5)),
    st.builds(Induction, chains=st.integers(1, 5), curriculum=st.booleans()),
    st.builds(
        ConditionalRetrieval,
        chains=st.just(3),
        decoys=st.integers(0, 2),
        facts=st.sampled_from([("a->x", "a->y", "x,y->z"), ("f,i->o",), ("a->b", "a,b,k->c")]),
    ),
)


@given(vector_tasks)
def test_sizes_are_those_of_the_entries(task: VectorTask) -> None:
    layout, size = task.layout(), task.size()
    placed = [entry.symbols for entry in layout.entries]
    symbols = {symbol for entry in placed for symbol in entry}
    assert size == layout.size
    assert task.interface().length == sum(map(len, placed))
    assert symbols == set(range(task.chains * size.symbols))
    queries = [e for e in layout.entries if e.roles[0].kind == "query"]
    assert task.interface().read == sum(len(entry.symbols) for entry in queries)


@given(vector_tasks)
def test_a_query_asks_for_the_values_of_its_own_chain(task: VectorTask) -> None:
    layout = task.layout()
    answers = layout.answers(task.asked_hops())
    assert len(answers) == task.chains
    for chain, asked in enumerate(answers):
        values = {
            entry.symbols[-1]: entry.roles[-1].fact + 1
            for entry in layout.entries
            if entry.chain == chain and entry.roles[-1].kind == "value"
        }
        assert tuple(values[symbol] for symbol in asked) == task.asked_hops()
