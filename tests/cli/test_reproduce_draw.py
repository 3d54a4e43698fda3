"""`hopscope reproduce --draw`: the figures of what is measured, without any training."""

from pathlib import Path

from musat_rows import loss_row
from reproducing import Say

from hopscope.papers.registry import PAPERS
from hopscope.papers.table import Protocol, Table


def test_what_is_measured_is_drawn_again(say: Say) -> None:
    say("musat/depth", "--protocol", "smoke", "--threads", "1")
    table = Path("found/musat/depth.jsonl").read_bytes()
    drawn = [Path(f"found/musat/depth-{name}.svg") for name in ("layers", "shared")]
    before = [figure.read_bytes() for figure in drawn]
    for path in (*drawn, Path("found/README.md")):
        path.unlink()
    code, out, err = say("--draw")  # of all targets, those that are measured
    assert (code, err) == (0, "")
    assert out.splitlines() == [*(f"figure: {path}" for path in drawn), "overview: found/README.md"]
    assert [figure.read_bytes() for figure in drawn] == before
    assert Path("found/musat/depth.jsonl").read_bytes() == table
    assert "musat/theorem-1" in Path("found/README.md").read_text()
    assert not Path("kept").exists()
    Path("found/musat/depth.jsonl").write_text("{}\n")
    code, _, err = say("musat/depth", "--draw")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("hopscope: found/musat/depth.jsonl")


def test_so_is_what_is_not_complete(say: Say) -> None:
    """Of several protocols the best, and nothing is trained that is missing."""
    results = PAPERS.results(Path("found"))
    target, figure = "musat/fig4-nonic-seeds", Path("found/musat/fig4-nonic-seeds-layers.svg")
    measured: list[tuple[Protocol, float]] = [("smoke", 0.9), ("full", 0.7)]
    drawn = []
    for protocol, loss in measured:
        row = loss_row(1, [loss] * 3, hops=3).model_copy(update={"run": "seed-0"})
        results.save_part(Table(target, protocol, (row,), wanted=16))
        code, out, err = say(target, "--draw")
        assert (code, err) == (0, "")
        assert f"figure: {figure}" in out
        drawn.append(figure.read_bytes())
    assert drawn[0] != drawn[1]
    results.part_path(target, "smoke").unlink()
    say(target, "--draw")
    assert figure.read_bytes() == drawn[1]
    assert not Path("kept").exists()
