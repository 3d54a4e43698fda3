"""Circuits, roles and runs in words, tables in a width, curves in a terminal."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hopscope import load
from hopscope.circuits import Circuit
from hopscope.configs import Experiment, Model, NgramExperiment
from hopscope.facts import Role
from hopscope.papers import preset
from hopscope.report.circuit import circuit_figure
from hopscope.report.layout import hanging, laid_out, wrapped
from hopscope.report.names import described, model_title, run_title
from hopscope.report.symbols import roles_told, seeds_told, short_role
from hopscope.report.terminal import plot, sparkline
from hopscope.report.words import circuit_grid, ordered_roles, remarks
from hopscope.store import Store


def test_the_grid_says_who_reads_whom_and_which_rows_have_no_path(circuit: Circuit) -> None:
    lines = circuit_grid(circuit).splitlines()
    assert lines[0].split() == ["layer", "q", "k0", "v0", "k1", "v1"]
    assert lines[1].split() == ["3", "v1·0+v1·1", "·", "·", "·", "·"]
    lines = circuit_grid(load("gallery/transformer-a").circuit).splitlines()
    assert lines[0].split() == ["layer", "q", "k0", "v0", "k1", "v1", "v2"]
    assert lines[1].split() == ["11", "place", "·", "·", "·", "·", "·"]
    assert lines[-1].split() == ["1", "·", "pos", "·", "pos", "pos", "·"]
    demo = load("gallery/demo").circuit  # but not what every role does
    assert any(len(part.readers) == len(demo.roles) and not part.paths for part in demo.parts)
    assert "pos" not in circuit_grid(demo)


def test_remarks_name_twins_and_stand_ins_and_say_what_is_not_explained(circuit: Circuit) -> None:
    def changed(**losses: object) -> Circuit:
        return circuit.model_copy(update={"losses": circuit.losses.model_copy(update=losses)})

    said = "\n".join(remarks(circuit))
    for told in ("3.0, 3.1 all do query ← value 1", "stand in: layer 0", "query learns x1, x2"):
        assert told in said
    poor = changed(clean=(0.9, 0.9), ideal=(0.9, 0.9))  # a model that only guesses
    assert (poor.solved, poor.explained) == (False, 0)
    said = "\n".join(remarks(poor))
    assert "there is nothing to explain: the model has 0.900, guessing 0.083" in said
    assert "solved" not in said
    assert "%" not in said
    limit, each = circuit.losses.limit, circuit.losses.hop_limits
    for own, told in ((limit, f"not more than {limit:.3f}"), (2 * limit, f"above {limit:.3f}")):
        assert f"the loss is {own:.3f}, {told}: " in remarks(changed(own=(own, own)))[1]
    failing = changed(ideal=(0.0, limit), hop_limits=(each[0], limit / 2))
    assert not failing.solved
    assert any(line.startswith("hop 2 fails: 0.0") for line in remarks(failing))
    lost = {"reached": (), "missed": ("x1",), "jumps": circuit.paths[:1]}
    flow = circuit.flow.model_copy(update=lost)
    said = "\n".join(remarks(changed(ideal=(0.5, 0.5)).model_copy(update={"flow": flow})))
    assert "not all is explained: 0.500" in said
    assert "the query learns nothing of x1" in said
    assert "found by no key that is known: layer 0" in said
    assert ((3, 0), (3, 1)) in [step.heads for step in circuit.shared]


def test_decoys_and_further_queries_have_their_place_and_their_names(circuit: Circuit) -> None:
    decoy, query = Role("decoy key", 1), Role("query", 1)
    part = circuit.parts[0]  # a layer below the query's looks
    path = replace(part.paths[0], reader=query, source=decoy)
    parts = (part.model_copy(update={"paths": (path,)}), *circuit.parts[1:])
    roles = (*circuit.roles, decoy, query)
    more = circuit.model_copy(update={"parts": parts, "roles": roles})
    assert [str(role) for role in ordered_roles(more)][:2] == ["query", "query 1"]
    assert ordered_roles(more)[-1] == decoy
    assert len(circuit_figure(more).axes[0].patches) == len(more.paths)
    assert "dk1" in circuit_grid(more).splitlines()[0].split()
    decoys = [decoy, Role("decoy value", 1)]
    assert [short_role(role) for role in decoys] == ["dk1", "dv1"]
    assert "dk, dv decoy key, decoy value" in roles_told(decoys)
    assert roles_told([Role("answer")]) == ""


def test_a_run_is_called_by_its_tags_or_its_preset_and_never_by_its_hash(store: Store) -> None:
    own = store.create(preset("demo").recipe)
    shape = "retrieval, 2 hops, 3 layers × 4 heads, seed 0"
    assert run_title(own) == f"demo: {shape}"
    store.tag(own.name, "baseline", "a")
    assert run_title(own) == f"a, baseline: {shape}"
    other = store.create(Experiment(model=Model(layers=1, heads=1), seeds=(3, 4)))
    assert run_title(other) == described(other.recipe)
    assert described(other.recipe).endswith("1 layer × 1 head, 2 seeds")
    assert described(NgramExperiment()) == NgramExperiment().title()
    assert model_title(load("gallery/demo")).startswith("gallery/demo: retrieval")
    assert model_title(load("gallery/demo", step=500)).endswith(", step 500")
    assert (seeds_told((7,)), seeds_told((7, 8))) == ("seed 7", "2 seeds")


WORDS = st.lists(st.text("abc日", min_size=1, max_size=9), max_size=6).map(" ".join)


@given(WORDS, st.integers(10, 60))
def test_wrapping_and_hanging_keep_all_words_and_their_order(text: str, width: int) -> None:
    lines = wrapped(text, width)
    assert " ".join(lines).split() == text.split()
    for one, other in pairwise(lines):  # no word would have fitted above
        assert cell_len(f"{one} {other.split()[0]}") > width
    first, *rest = hanging(text, width)
    assert [*first.split(), *(word for line in rest for word in line.split())] == text.split()
    assert all(line.startswith("  ") and line[2:3].strip() for line in rest)
    for line in (*lines, first, *rest):
        assert cell_len(line) <= width or " " not in line.strip()


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), min_size=1, max_size=4), st.integers(10, 60))
def test_no_word_of_a_table_is_ever_cut(rows: list[tuple[str, ...]], width: int) -> None:
    lines = laid_out(["one", "two", "three"], rows, width)
    found = sorted(" ".join(lines).split())
    wanted = sorted(word for row in rows for cell in row for word in cell.split())
    if lines and lines[0].startswith("one  "):
        assert found == sorted([*wanted, "one", "two", "three"])
        assert all(cell_len(line) <= width for line in lines)
    else:
        assert [word for word in found if word not in ("one:", "two:", "three:")] == wanted


def test_what_fits_stands_side_by_side_and_else_in_blocks() -> None:
    lines = laid_out(["run", "loss"], [["a", "0.5 0.25"], ["bcd", ""]], 80)
    assert lines == ["run  loss", "a    0.5 0.25", "bcd"]
    row = ["retrieval-d2-l3h4-2cf992db20", "2,500", "", "0.010 0.012"]
    assert laid_out(["run", "step", "models", "loss of each hop"], [row], 40) == [
        "run: retrieval-d2-l3h4-2cf992db20", "  step: 2,500", "  loss of each hop: 0.010 0.012",
    ]  # fmt: skip
    for rows in ([], [["x", "y"]]):  # colours do not count
        plain, painted = (laid_out(["x", "b"], rows, 80, *hue) for hue in ([], [{"x": "32"}]))
        assert [line.replace("\x1b[32m", "").replace("\x1b[0m", "") for line in painted] == plain
        assert "\x1b[32mx\x1b[0m" in painted[0]


def test_sparklines_shrink_and_clip() -> None:
    for values, width, shown in (
        ([], 40, ""),
        ([0.0, 0.5, 1.0, 2.0, -1.0], 5, "▁▅██▁"),
        ([0.0] * 50 + [1.0] * 50, 4, "▁▁██"),
        ([0.0, np.nan, 1.0], 3, "▁ █"),  # what is no number leaves a gap
    ):
        assert sparkline(np.array(values), width=width) == shown


def test_the_plot_puts_each_hop_where_its_loss_is() -> None:
    steps = np.arange(1, 129)
    losses = np.stack([np.linspace(1, 0, 128), np.full(128, 0.75)], axis=1)
    lines = plot(steps, losses, level=0.75).splitlines()
    assert lines[-1].split() == ["0", "step", "128"]
    assert "│11" in lines[1]
    assert lines[11].endswith("11")
    level = next(line for line in lines if line.startswith(" 0.75"))
    assert level.count("2") >= 56
    values = np.array([[0.0], [np.nan], [1.0]])
    drawn, empty = (plot(np.arange(3), each, 0.75) for each in (values, values * np.nan))
    assert drawn.count("1") - empty.count("1") == 2  # a gap and no error
