"""What a target measures is there without torch, and each function gives rows of its target."""

import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.papers.musat import measuring
from hopscope.papers.musat.recipes import tiny
from hopscope.papers.musat.targets import TARGETS
from hopscope.training import train


def test_the_list_of_targets_is_there_without_torch() -> None:
    asked = "import hopscope.papers.musat.targets, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


NAMES = ("musat/fig4-ic", "musat/fig5", "musat/fig7", "musat/places", "musat/places-changed")


@pytest.mark.slow
def test_rows_are_of_the_kinds_that_the_target_names(tmp_path: Path) -> None:
    folder = train(tiny(1, 2, 400), tmp_path).folder
    for target in TARGETS:
        if target.name in NAMES:
            rows = target.measure(folder, "smoke")
            assert rows, target.name
            assert {type(row) for row in rows} <= set(target.rows), target.name
    assert {row.steps for row in measuring.changed(folder, "smoke")} == {25}  # less, for a trial
