"""The overview of results is what the tables say; the one in the repository is not out of date."""

from pathlib import Path

import pytest

from hopscope.papers.claim import Claim, Finding, claims
from hopscope.papers.results import Results, Table
from hopscope.papers.target import Target, targets
from hopscope.report.readme import readme

ROOT = Path(__file__).parents[2] / "results"


def test_claims_and_tables_are_told(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.save(Table("paper/one", "reduced", ({"x": 1},), remark="one seed", machine="here"))
    targets_ = {
        name: Target(name, "a figure", lambda *_: []) for name in ("paper/one", "paper/two")
    }
    claim = Claim(
        "paper/x", "x | y", "§1", "1", "as it is", ("paper/one",),
        lambda tables: Finding(str(tables[0].rows[0]["x"]), "reproduced", "a row"),
    )  # fmt: skip
    lines = readme({claim.id: claim}, targets_, results).splitlines()
    assert (
        "| paper/x | x \\| y | §1 | 1 | 1 | reproduced | a row; paper/one: reduced protocol |"
        in lines
    )
    assert any(line.startswith("| paper/one | reduced: one seed | 1 | ") for line in lines)
    assert not any(line.startswith("| paper/two") for line in lines)


@pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="no results in this checkout")
def test_the_overview_in_the_repository_is_current() -> None:
    found = (ROOT / "README.md").read_text()
    assert found == readme(claims(), targets(), Results(ROOT)), (
        "results/README.md is out of date: `hopscope reproduce musat/depth` writes it anew"
    )
