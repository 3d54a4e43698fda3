"""Tables of results: kept as they are, refused where they would not be, never replaced by less."""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hopscope.errors import HopscopeError, ResultsMissing, ResultsUnreadable, StoreUnwritable
from hopscope.papers import results_folder
from hopscope.papers.registry import PAPERS
from hopscope.papers.results_folder import Results, that_came_with_it
from hopscope.papers.row import Row
from hopscope.papers.table import PROTOCOLS, Protocol, Table, machine
from hopscope.papers.table_file import protocol_of
from hopscope.papers.target import Target

NAME = "musat/depth"


class Numbered(Row):
    n: int | None = None
    far: float | None = None
    words: tuple[str, ...] = ()


TARGETS = {name: Target(name, "a figure", (Numbered,)) for name in (NAME, "musat/fig5")}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    return Results(tmp_path / "results", TARGETS)


def filled(results: Results, content: bytes) -> Path:
    """A file of results with this content."""
    path = results.path(NAME)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def one_line(error: HopscopeError) -> str:
    """Its text, which a terminal can show as one line."""
    text = str(error)
    assert text.isprintable()
    return text


def test_a_table_survives_saving_and_reading(results: Results) -> None:
    rows = (
        Numbered(n=3, far=0.1 + 0.2),
        Numbered(n=None, far=float("inf"), words=("zwei Zeilen\nund ein \u2028",)),
    )
    table = Table(NAME, "reduced", rows, remark='not "full"', machine=machine(2))
    path = results.save(table)
    assert path == results.root / "musat" / "depth.jsonl"
    assert results.has(NAME)
    assert results.table(NAME) == table
    assert len(path.read_bytes().splitlines()) == 3
    assert protocol_of(path) == "reduced"
    assert "2 threads" in table.machine


def test_what_was_not_measured_names_its_command(results: Results) -> None:
    assert not results.has(NAME)
    with pytest.raises(ResultsMissing, match=f"`hopscope reproduce {NAME}` measures") as caught:
        results.table(NAME)
    assert f"{results.path(NAME)} does not exist" in one_line(caught.value)


@pytest.mark.parametrize("kept", PROTOCOLS)
@pytest.mark.parametrize("new", PROTOCOLS)
def test_only_a_better_protocol_is_not_replaced(
    results: Results, kept: Protocol, new: Protocol
) -> None:
    old = Table(NAME, kept, (Numbered(n=1),))
    results.check(NAME, kept)
    path = results.save(old)
    if PROTOCOLS[kept] <= PROTOCOLS[new]:
        results.check(NAME, new)
        results.save(Table(NAME, new, (Numbered(n=2),)))
        assert results.table(NAME) == Table(NAME, new, (Numbered(n=2),))
        return
    for refused in (
        lambda: results.check(NAME, new),
        lambda: results.save(Table(NAME, new, (Numbered(n=2),))),
    ):
        with pytest.raises(ResultsUnreadable) as caught:
            refused()
        assert one_line(caught.value) == (
            f"{path} holds the {kept} protocol, which {new} would replace: choose another folder "
            "with --results"
        )
    assert results.table(NAME) == old


def test_a_better_protocol_counts_in_whatever_format(results: Results) -> None:
    filled(results, b'{"format": 99, "protocol": "full"}\n')
    with pytest.raises(ResultsUnreadable, match="holds the full protocol"):
        results.check(NAME, "reduced")
    results.check(NAME, "full")


@pytest.mark.parametrize("garbage", [b"no JSON\n", b"\xff\xfe\x00", b""])
def test_garbage_may_be_replaced(results: Results, garbage: bytes) -> None:
    filled(results, garbage)
    table = Table(NAME, "smoke", (Numbered(n=1),))
    results.save(table)
    assert results.table(NAME) == table


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_is_one_line(
    results: Results, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(
        StoreUnwritable, match="cannot write .*depth.jsonl: .*choose another folder"
    ) as caught:
        results.save(Table(NAME, "smoke", ()))
    assert "--store" not in one_line(caught.value)
    assert not results.has(NAME)


def test_a_file_where_the_folder_should_be_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write .*choose another folder"):
        Results(tmp_path / "results", TARGETS).save(Table(NAME, "smoke", ()))


PART = Table(
    NAME, "full", (Numbered(run="b", n=1), Numbered(run="a", n=2), Numbered(run="b")), wanted=3
)


def test_a_part_is_kept_beside_lesser_results_until_all_is_there(results: Results) -> None:
    lesser = Table(NAME, "reduced", (Numbered(run="c"),))
    results.save(lesser)
    assert results.part(NAME, "full") == Table(NAME, "full", ())
    path = results.save_part(PART)
    assert path == results.root / "musat" / "depth.full.part.jsonl"
    assert results.part(NAME, "full") == PART
    assert results.parts(NAME) == [PART]
    assert PART.runs == ("b", "a")
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


@pytest.mark.parametrize(
    "changed", [replace(PART, protocol="reduced"), replace(PART, rows=(Numbered(n=1),))]
)
def test_a_part_that_is_none_is_one_line(results: Results, changed: Table) -> None:
    path = results.save_part(PART)
    path.write_bytes(changed.to_bytes())
    with pytest.raises(ResultsUnreadable) as caught:
        results.part(NAME, "full")
    assert one_line(caught.value) == (
        f"{path} is no part of the full protocol: remove it, and `hopscope reproduce {NAME}` "
        "measures it anew"
    )


def test_a_claim_says_how_far_its_runs_came(results: Results) -> None:
    claim = PAPERS.claims["musat/theorem-1"]
    assert claim.finding(results).evidence == f"`hopscope reproduce {NAME}`"
    results.save_part(PART)
    found = claim.finding(results)
    assert found.verdict == "not measured"
    assert found.evidence == (
        f"`hopscope reproduce {NAME} --protocol full`: 2 of 3 runs are measured"
    )


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


def test_the_most_runs_are_shown(results: Results) -> None:
    """But tiny models only if there are no others, however complete their table is."""
    rows = tuple(Numbered(run=f"run-{n}", n=n) for n in range(3))
    smoke, full, reduced = (
        replace(PART, protocol=protocol, rows=rows[:runs])
        for protocol, runs in (("smoke", 3), ("full", 1), ("reduced", 2))
    )
    results.save(smoke)
    assert results.shown(NAME) == smoke
    for part in (full, reduced):
        results.save_part(part)
        assert results.shown(NAME) == part
    results.save(replace(reduced, rows=rows))
    assert results.shown(NAME) == replace(reduced, rows=rows)


def test_all_that_there_is_of_a_target(results: Results) -> None:
    assert results.shown(NAME) is None
    assert results.so_far(NAME) == []
    assert not results.any()
    less = replace(PART, protocol="reduced")
    for part in (PART, less):
        results.save_part(part)
    assert results.any()
    assert results.shown(NAME) == PART
    assert results.so_far(NAME) == [less, PART]
    complete = Table(NAME, "smoke", (Numbered(n=1),))
    results.save(complete)
    assert results.so_far(NAME) == [complete, less, PART]
    filled(results, b"no table")
    assert results.shown(NAME) == PART
    results.part_path(NAME, "full").write_bytes(b"no part")
    assert results.shown(NAME) is None
    results.save(less)
    assert results.shown(NAME) == less


def test_a_table_that_a_gpu_made_names_it() -> None:
    assert machine(2, "some GPU") == f"some GPU, {machine(2)}"
