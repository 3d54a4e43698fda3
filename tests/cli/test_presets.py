"""Presets, with where their values come from."""

import re
from collections.abc import Callable

Say = Callable[..., tuple[int, str, str]]


def test_presets_are_listed_with_their_sources(hopscope: Say) -> None:
    assert "musat/transformer-d-epochs" in hopscope("presets")[1]
    out = hopscope("presets", "musat/transformer-a")[1]
    assert re.search(r"training\.steps +24000 +§8\.1: 24k", out)
