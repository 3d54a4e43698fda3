from pathlib import Path

import pytest

from hopscope.cli.main import run
from hopscope.errors import HopscopeError


def test_bounds_and_schedule_of_a_chain(capsys: pytest.CaptureFixture[str]) -> None:
    run(["depth", "--hops", "5"])
    out = capsys.readouterr().out
    assert "Theorem 1 (a lower bound)                3 layers" in out
    assert "exact, causal, last hop first            4 layers" in out
    assert "x1 2, x2 3, x3 3, x4 4, x5 4" in out
    assert "query knows" in out


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ([], "x1 2, x2 3, x3 3"),
        (["--task", "induction"], "x1 2\n"),
        (["--task", "conditional"], "x 2, y 2, z 3"),
        (["--task", "khop"], "x1 2, x2 3\n"),
        (["--task", "mqar"], "x1 2\n"),
        (["--hops", "4", "--heads", "1"], "with one head, exact"),
        (["--hops", "5", "--heads", "1", "--bidirectional"], "at most this; at least 3"),
        (["--hops", "4", "--order", "forward"], "causal attention, forward, heads unlimited"),
        (["--facts", "a->b", "b->c"], "c 3"),
    ],
)
def test_what_can_be_asked(capsys: pytest.CaptureFixture[str], flags: list[str], text: str) -> None:
    assert run(["depth", *flags]) == 0
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("hops", [101, 2_000, 10**11])
def test_bounds_of_many_hops_come_at_once(capsys: pytest.CaptureFixture[str], hops: int) -> None:
    run(["depth", "--hops", str(hops)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["hops", str(hops)]
    assert lines[3].split()[-2:] == [str(hops.bit_length() + 1), "layers"]
    assert lines[-1] == f"the schedule is drawn for up to 100 hops, not for {hops:,} hops"
    with pytest.raises(HopscopeError, match="are too many for a figure; expected up to 100"):
        run(["depth", "--hops", str(hops), "--figure", "x.svg"])


def test_a_table_is_a_line_per_depth(capsys: pytest.CaptureFixture[str]) -> None:
    run(["depth", "--table", "1..64"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 65
    assert lines[-1].split() == ["64", "5", "6", "8"]


def test_the_figure_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["depth", "--hops", "2", "--figure", str(tmp_path / "shared.svg")])
    assert (tmp_path / "shared.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--hops", "0"], "hops is 0"),
        (["--hops", "-2"], "hops is -2"),
        (["--heads", "2"], "heads is 2; expected 1"),
        (["--table", "5"], "expected a range of hops like 1..64"),
        (["--table", f"1..{'9' * 5_000}"], "expected a range of hops like 1..64"),
        (["--table", "0..3"], "expected a range of hops"),
        (["--task", "sorting"], "invalid choice 'sorting'"),
        (["--facts", "a->b", "b->a"], "need each other"),
        (["--facts", "a b"], "cannot read the fact"),
        (["--hops", "2", "--task", "conditional"], "give one of --hops, --facts and --task"),
        (["--hops", "500", "--task", "induction"], "give one of --hops, --facts and --task"),
        (["--json", "--hops", "2", "--facts", "a->b"], "give one of --hops, --facts and --task"),
        (["--json", "--hops", "2", "--figure", "x.svg"], "--json tells what --figure would draw"),
    ],
)
def test_mistakes_are_one_line(flags: list[str], text: str) -> None:
    with pytest.raises(HopscopeError, match=text) as caught:
        run(["depth", *flags])
    assert "\n" not in str(caught.value)
