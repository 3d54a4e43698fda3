"""Importing does nothing, and the light rooms stay light."""

import subprocess
import sys

import pytest

LIGHT = [
    "hopscope", "hopscope.configs", "hopscope.facts", "hopscope.store", "hopscope.theory",
    "hopscope.papers", "hopscope.papers.registry", "hopscope.milestones", "hopscope.cli.main",
]  # fmt: skip


@pytest.mark.parametrize("module", LIGHT)
def test_light_modules_import_no_torch(module: str) -> None:
    code = f"import sys, {module}; print('torch' in sys.modules, 'duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_the_main_flow_is_at_the_top() -> None:
    import hopscope

    for name in hopscope.__all__:
        assert getattr(hopscope, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hopscope.nothing  # noqa: B018
