"""The overview of results is what the tables say; the one in the repository is not out of date."""

from pathlib import Path

import pytest

from hopscope.papers.claim import Claim, Finding
from hopscope.papers.registry import PAPERS
from hopscope.papers.results_folder import Results
from hopscope.papers.row import Row
from hopscope.papers.table import Table
from hopscope.papers.target import Target
from hopscope.report.readme import readme

ROOT = Path(__file__).parents[2] / "results"


class Numbered(Row):
    x: int


def test_claims_and_tables_are_told(tmp_path: Path) -> None:
    targets = {name: Target(name, "a figure", (Numbered,)) for name in ("paper/one", "paper/two")}
    results = Results(tmp_path, targets)
    rows = (Numbered(x=1),)
    results.save(Table("paper/one", "reduced", rows, remark="one seed", machine="here"))
    claim = Claim(
        "paper/x", "x | y", "§1", "1", "as it is", ("paper/one",),
        lambda tables: Finding(str(tables[0].of(Numbered)[0].x), "reproduced", "a row"),
    )  # fmt: skip
    lines = readme({claim.id: claim}, targets, results).splitlines()
    assert (
        "| paper/x | x \\| y | §1 | 1 | 1 | reproduced | a row; paper/one: reduced protocol, "
        "computed, without any training |" in lines
    )
    assert any(line.startswith("| paper/one | reduced: one seed | 1 | ") for line in lines)
    assert not any(line.startswith("| paper/two") for line in lines)


@pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="no results in this checkout")
def test_the_overview_in_the_repository_is_current() -> None:
    found = (ROOT / "README.md").read_text()
    assert found == readme(PAPERS.claims, PAPERS.targets, PAPERS.results(ROOT)), (
        "results/README.md is out of date: `hopscope reproduce --draw` writes it anew"
    )
