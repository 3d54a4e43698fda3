"""What a figure's file may be called."""

from pathlib import Path

import pytest

from hopscope.errors import ConfigError
from hopscope.report.formats import FORMATS, check_format


@pytest.mark.parametrize("suffix", FORMATS)
def test_formats_that_are_known(suffix: str) -> None:
    check_format(Path(f"a.b{suffix}"))


@pytest.mark.parametrize("name", ["a", "a.jpg", "a.SVG", "a.svg.gz", ".svg"])
def test_others_are_named_with_those_there_are(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"ends in .svg, .pdf, .png, not {name}"):
        check_format(Path(name))
