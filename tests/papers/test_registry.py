"""Which targets a pattern means; and tables of before open as they are."""

from collections import Counter
from pathlib import Path

import pytest

from hopscope.errors import ConfigError
from hopscope.papers.registry import PAPERS
from hopscope.papers.table import PROTOCOLS


def names(pattern: str) -> list[str]:
    return [target.name for target in PAPERS.matching(pattern)]


def test_targets_are_found_by_name_paper_and_beginning() -> None:
    assert names("musat/fig5") == ["musat/fig5"]
    assert names("musat/fig4") == [
        "musat/fig4-ic", "musat/fig4-nonic", "musat/fig4-seeds", "musat/fig4-nonic-seeds",
    ]  # fmt: skip
    assert names("musat/readings") == ["musat/readings"]
    assert names("musat/reading") == ["musat/readings", "musat/readings-long"]
    assert names("musat") + names("chen") == names("") == list(PAPERS.targets)
    assert all(name.startswith("chen/") for name in names("chen"))


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        ("fig5", r"did you mean musat/fig5\?$"),
        ("musat/fig5 ", r"did you mean musat/fig5, "),
        ("table", "there are musat/fig2, .*, chen/choices$"),
    ],
)
def test_an_unknown_target_gets_those_like_it_or_the_list(pattern: str, answer: str) -> None:
    with pytest.raises(ConfigError, match=f"no target '{pattern}': {answer}"):
        PAPERS.matching(pattern)


ROOT = Path(__file__).parents[2] / "results"


@pytest.mark.skipif(not ROOT.is_dir(), reason="no results in this checkout")
@pytest.mark.parametrize("target", PAPERS.targets)
def test_tables_in_the_repository_come_back_to_the_letter(target: str) -> None:
    results = PAPERS.results(ROOT)
    table = results.table(target)
    assert table.rows
    assert set(map(type, table.rows)) == set(PAPERS.targets[target].rows)
    assert table.to_bytes() == results.path(target).read_bytes()


@pytest.mark.skipif(not ROOT.is_dir(), reason="no results in this checkout")
def test_the_readme_tells_the_verdicts_as_they_are() -> None:
    found = Counter(claim.finding(PAPERS.results(ROOT)).verdict for claim in PAPERS.claims.values())
    told = (
        f"with a verdict on {found.total()} claims ({found['reproduced']} reproduced, "
        f"{found['not reproduced']} not, {found['under a reading']} under a reading of what they "
        f"leave open, {found['not measured']} not measured on models as large)"
    )
    assert told in " ".join((ROOT.parent / "README.md").read_text().split())


@pytest.mark.skipif(not ROOT.is_dir(), reason="no results in this checkout")
def test_so_do_parts_of_what_is_still_trained_by_a_better_protocol() -> None:
    results = PAPERS.results(ROOT)
    parts = [part for target in PAPERS.targets for part in results.parts(target)]
    assert len(parts) == len([*ROOT.glob("*/*.part.jsonl")])
    for part in parts:
        target = part.target
        assert PROTOCOLS[part.protocol] > PROTOCOLS[results.table(target).protocol]
        assert part.missing
        assert part.to_bytes() == results.part_path(target, part.protocol).read_bytes()
