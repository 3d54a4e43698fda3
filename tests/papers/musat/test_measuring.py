"""What a target measures is there without torch, and each function gives rows of its target."""

import subprocess
import sys

import pytest

from hopscope.papers.musat import measuring
from hopscope.papers.musat.targets import TARGETS
from hopscope.store.gallery import find


def test_the_list_of_targets_is_there_without_torch() -> None:
    asked = "import hopscope.papers.musat.targets, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


QUICK = ("musat/fig4-ic", "musat/places", "musat/places-changed")
CIRCUITS = [pytest.param(name, marks=pytest.mark.slow) for name in ("musat/fig5", "musat/fig7")]


@pytest.mark.parametrize("name", [*QUICK, *CIRCUITS])
def test_rows_are_of_the_kinds_that_the_target_names(name: str) -> None:
    target = next(each for each in TARGETS if each.name == name)
    rows = target.measure(find("demo"), "smoke")
    assert rows
    assert {type(row) for row in rows} <= set(target.rows)


def test_less_is_trained_on_for_a_trial() -> None:
    assert {row.steps for row in measuring.changed(find("demo"), "smoke")} == {25}
