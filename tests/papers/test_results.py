"""Tables of results: rows come back to the letter, garbage is refused in a line that says what to
do, and nothing is replaced by less.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import StrictFloat, StrictInt

from hopscope.errors import HopscopeError, ResultsError
from hopscope.papers import results_folder
from hopscope.papers.results_folder import Results, that_came_with_it
from hopscope.papers.row import Numbers, Record, Row, read_row
from hopscope.papers.table import FORMAT, PROTOCOLS, Table, machine
from hopscope.papers.table_file import protocol_of
from hopscope.papers.target import Target

NAME = "musat/depth"
HEAD = f'{{"target": "{NAME}", "protocol": "reduced", "format": {FORMAT}}}'


class Inner(Record):
    values: Numbers


class Loss(Row):
    loss: StrictFloat
    step: StrictInt | None = None
    inner: Inner | None = None


class Count(Row):
    count: StrictInt
    of: StrictInt


KINDS = (Loss, Count)
TARGETS = {name: Target(name, "a figure", KINDS) for name in (NAME, "musat/fig5")}
ONE = (Count(count=1, of=2),)
PART = Table(
    NAME, "full", (*(Loss(run=name, loss=0.5) for name in "bab"), Count(run="a", count=1, of=2)),
    wanted=3,
)  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results", TARGETS)


def filled(results: Results, content: bytes) -> Path:
    """The file of a target, with this content."""
    path = results.path(NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def one_line(error: HopscopeError) -> str:
    """Its text, which a terminal can show as one line."""
    assert str(error).isprintable()
    return str(error)


def test_what_is_wrong_with_a_row_is_one_line() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"count": 1}, "'Count.of': "),  # of two that lack one field, that which fits
        ({"count": 1, "of": 2.5}, "'Count.of': "),
        ({"loss": True}, "'Loss.loss': "),
        ({"loss": "1"}, "'Loss.loss': "),
        ({"loss": 1.0, "lost": 1}, "'Loss.lost': "),
        ({"loss": 1.0, "\x1b[2J": 1}, "'Loss.\\x1b[2J': "),
        ({"loss": 1.0, "inner": {"values": ["x"]}}, "'Inner.values.0': "),
    ]
    for values, text in wrong:
        with pytest.raises(ResultsError) as caught:
            read_row(KINDS, values)
        assert one_line(caught.value).startswith(text), values


def test_a_table_survives_saving_and_reading_and_knows_its_rows(results: Results) -> None:
    strange = Loss(run="zwei Zeilen\nund ein \u2028", loss=float("inf"))
    table = replace(PART, rows=(*PART.rows, strange), remark='not "full"', machine=machine(2, "G"))
    path = results.save(table)
    assert results.has(NAME)
    assert results.table(NAME) == table
    assert len(path.read_bytes().splitlines()) == 6
    assert protocol_of(path) == "full"
    assert "2 threads" in table.machine
    assert table.machine.startswith("G, ")
    assert (table.of(Row), table.of(Count)) == ([*table.rows], [table.rows[3]])
    assert (PART.runs, PART.missing) == (("b", "a"), 1)
    assert [replace(PART, wanted=wanted).missing for wanted in (1, None)] == [0, 0]
    assert b"wanted" not in replace(PART, wanted=None).to_bytes()


GARBAGE = {
    "empty": b"",
    "an empty line": b"\n",
    "no JSON": b"\x1b[31mred\n",
    "no text": b"\xff\xfe\x00",
    "cut off": f'{HEAD}\n{{"loss": 0.'.encode(),
    "too deep": b"[" * 100_000,
    "no object": b"[1, 2]\n",
    "a row that is none": f"{HEAD}\n3\n".encode(),
    "no head": b'{"loss": 0.5}\n',
    "no format": HEAD.replace('"format"', '"form"').encode(),
    "an unknown field": HEAD.replace("}", ', "\\u001b[2J": 1}').encode(),
    "rows in the head": HEAD.replace("}", ', "rows": []}').encode(),
    "an unknown protocol": HEAD.replace("reduced", "grand").encode(),
    "a protocol that is a list": HEAD.replace('"reduced"', "[]").encode(),
    "of another target": HEAD.replace(NAME, "musat/fig5").encode(),
}
OTHERS = ("0", "2", '"2\\n"', "null", "[1]")
WRONG = {
    **{name: (content, "is no table of results") for name, content in GARBAGE.items()},
    **{of: (f'{{"format": {of}, "goal": "?"}}\n'.encode(), "has format ") for of in OTHERS},
    "a row of others": (f'{HEAD}\n{{"loss": 1.0}}\n{{"m": 1}}\n'.encode(), "line 3 of "),
}


def test_garbage_is_one_line_that_says_what_to_do_and_may_be_replaced(results: Results) -> None:
    for name, (content, says) in WRONG.items():
        path = filled(results, content)
        with pytest.raises(ResultsError) as caught:
            results.table(NAME)
        text = one_line(caught.value)
        assert says in text, name
        assert str(path) in text, name
        assert text.endswith(f"`hopscope reproduce {NAME}` measures it anew"), name
        results.save(Table(NAME, "reduced", ONE))
        assert results.table(NAME).rows == ONE, name
    filled(results, f"{HEAD}\n".encode())
    assert results.table(NAME) == Table(NAME, "reduced", ())
    results.path(NAME).unlink()
    with pytest.raises(ResultsError, match=f"`hopscope reproduce {NAME}` measures") as missing:
        results.table(NAME)
    assert str(results.path(NAME)) in one_line(missing.value)


def test_only_a_better_protocol_is_not_replaced_in_whatever_format(results: Results) -> None:
    unknown = b'{"format": 99, "protocol": "%b"}\n'
    for kept in PROTOCOLS:
        for new in PROTOCOLS:
            for content in (Table(NAME, kept, ONE).to_bytes(), unknown % kept.encode()):
                path = filled(results, content)
                table = Table(NAME, new, ())
                if PROTOCOLS[kept] <= PROTOCOLS[new]:
                    results.check(NAME, new)
                    results.save(table)
                    assert results.table(NAME) == table, (kept, new)
                    continue
                for refused in (lambda new=new: results.check(NAME, new),
                                lambda table=table: results.save(table)):  # fmt: skip
                    with pytest.raises(ResultsError, match=f"{kept} .*, which {new} would"):
                        refused()
                assert path.read_bytes() == content
    assert protocol_of(filled(results, b"\xff full\n")) == "smoke"


def test_a_part_is_kept_beside_lesser_results_until_all_is_there(results: Results) -> None:
    lesser = Table(NAME, "reduced", (Loss(run="c", loss=1.0),))
    results.save(lesser)
    assert results.part(NAME, "full") == Table(NAME, "full", ())
    path = results.save_part(PART)
    assert results.part(NAME, "full") == PART
    assert results.table(NAME) == lesser
    less = replace(PART, protocol="reduced")
    results.save_part(less)
    assert results.parts(NAME) == [less, PART]
    assert results.so_far(NAME) == [lesser, PART]  # and not twice what the complete table has
    results.save(lesser)
    assert results.parts(NAME) == [PART]
    results.save_part(less)
    results.save(PART)
    assert results.parts(NAME) == []
    for wrong in (less, replace(PART, rows=ONE)):
        path.write_bytes(wrong.to_bytes())
        with pytest.raises(ResultsError, match=f"`hopscope reproduce {NAME}`") as caught:
            results.part(NAME, "full")
        assert str(path) in one_line(caught.value)


def test_the_most_runs_are_shown(results: Results) -> None:
    """But tiny models only if there are no others, however complete their table is."""
    assert (results.shown(NAME), results.so_far(NAME), results.any()) == (None, [], False)
    rows = tuple(Loss(run=f"run-{n}", loss=1.0) for n in range(3))
    smoke, full, reduced = (
        replace(PART, protocol=protocol, rows=rows[:runs])
        for protocol, runs in (("smoke", 3), ("full", 1), ("reduced", 2))
    )
    results.save_part(full)
    assert results.any()
    results.save(smoke)
    assert results.so_far(NAME) == [smoke, full]
    assert results.shown(NAME) == full
    results.save_part(reduced)
    assert results.shown(NAME) == reduced
    filled(results, b"no table")
    assert results.shown(NAME) == reduced
    results.save(replace(reduced, rows=rows))
    assert results.shown(NAME) == replace(reduced, rows=rows)
    results.part_path(NAME, "full").write_bytes(b"no part")
    assert results.shown(NAME) == replace(reduced, rows=rows)
    results.path(NAME).unlink()
    assert results.shown(NAME) is None


def test_an_installed_package_has_its_results_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "hopscope" / "papers" / "results_folder.py"
    monkeypatch.setattr(results_folder, "__file__", str(inside))
    assert that_came_with_it() is None
    (tmp_path / "results").mkdir()
    assert that_came_with_it() is None  # another package's
    (tmp_path / "pyproject.toml").write_text("")
    assert that_came_with_it() == tmp_path / "results"
    (tmp_path / "hopscope" / "results").mkdir(parents=True)
    assert that_came_with_it() == tmp_path / "hopscope" / "results"
