"""The page of all fields is what the configs say, and every field says what it means."""

from pathlib import Path

import hopscope.configs
from hopscope.cli.fields import CONFIGS, meanings, page
from hopscope.configs import Config, Training

PAGE = Path(hopscope.configs.__file__).parents[2] / "docs" / "fields.md"
WITHOUT_FIELDS = {"Config", "FactTask", "VectorTask", "Recipe", "Interface"}
"""Bases, and what follows from a task: nobody writes them."""


def test_the_page_is_current_and_has_every_field_of_every_config() -> None:
    """`python -m hopscope.cli.fields docs/fields.md` renews it."""
    assert PAGE.read_text() == page()
    assert meanings(Training)["lr"] == "Learning rate of AdamW (§7.1: 1e-3)."
    public = [getattr(hopscope.configs, name) for name in hopscope.configs.__all__]
    there = {each for each in public if isinstance(each, type) and issubclass(each, Config)}
    assert {each for each in there if each.__name__ not in WITHOUT_FIELDS} == {*CONFIGS}
    for config in CONFIGS:
        assert all(text.endswith((".", "?", ")")) for text in meanings(config).values()), config
