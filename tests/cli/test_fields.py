"""The page of all fields is what the configs say, and every field says what it means."""

import re
from pathlib import Path

import pytest

import hopscope.configs
from hopscope.cli.fields import CONFIGS, meanings, page
from hopscope.configs import Config, Training

PAGE = Path(hopscope.configs.__file__).parents[2] / "docs" / "fields.md"
WITHOUT_FIELDS = {"Config", "FactTask", "VectorTask", "Recipe", "Interface"}
"""Bases, and what follows from a task: nobody writes them."""


def test_the_page_is_current() -> None:
    """`python -m hopscope.cli.fields docs/fields.md` renews it."""
    assert PAGE.read_text() == page()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_field_says_what_it_means(config: type[Config]) -> None:
    assert [
        name for name, text in meanings(config).items() if not text.endswith((".", "?", ")"))
    ] == []


def test_the_text_below_a_field_is_its_meaning() -> None:
    assert meanings(Training)["lr"] == "Learning rate of AdamW (§7.1: 1e-3)."
    assert re.search(r"\| `lr` \| `0.001` \| Learning rate of AdamW \(§7.1: 1e-3\)\. \|", page())


def test_no_config_is_left_out() -> None:
    there = {
        name
        for name in hopscope.configs.__all__
        if isinstance(found := getattr(hopscope.configs, name), type) and issubclass(found, Config)
    }
    assert there - WITHOUT_FIELDS == {config.__name__ for config in CONFIGS}
