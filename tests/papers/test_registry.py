"""Which targets a pattern means."""

import pytest

from hopscope.errors import ConfigError
from hopscope.papers.registry import PAPERS


def names(pattern: str) -> list[str]:
    return [target.name for target in PAPERS.matching(pattern)]


def test_targets_are_found_by_name_paper_and_beginning() -> None:
    assert names("musat/fig5") == ["musat/fig5"]
    assert names("musat/fig4") == ["musat/fig4-ic", "musat/fig4-nonic"]
    assert names("musat") + names("chen") == names("") == list(PAPERS.targets)
    assert all(name.startswith("chen/") for name in names("chen"))


@pytest.mark.parametrize("pattern", ["musat/fig9", "fig5", "musat/fig5 "])
def test_an_unknown_target_gets_the_list(pattern: str) -> None:
    with pytest.raises(ConfigError, match=f"no target '{pattern}': there are musat/fig2, "):
        PAPERS.matching(pattern)
