"""Files of figures: text that is text, a title and a caption, and the reader's light or dark."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import Image

from hopscope.circuits import Circuit
from hopscope.errors import ConfigError, StoreUnwritable
from hopscope.report.circuit import circuit_figure
from hopscope.report.formats import FORMATS, check_format
from hopscope.report.look import DARK, LIGHT, Look, looking
from hopscope.report.saving import save_figure, svg, theme, themed

SVG = "{http://www.w3.org/2000/svg}"


def saved(circuit: Circuit, path: Path, look: Look) -> bytes:
    with looking(look):
        return save_figure(circuit_figure(circuit, of="A & B"), path).read_bytes()


def test_svg_has_text_that_can_be_searched_a_title_and_a_caption(
    circuit: Circuit, tmp_path: Path
) -> None:
    first = saved(circuit, tmp_path / "a.svg", Look())
    root = ET.fromstring(first)
    texts = ["".join(each.itertext()).strip() for each in root.iter(f"{SVG}text")]
    assert {"layer 0", "v0", "carries the answer"} <= set(texts)
    assert root.findtext(f"{SVG}title") == "A & B"
    assert root.findtext(f"{SVG}desc", "").startswith("An arrow leads from the role that is read")
    assert saved(circuit, tmp_path / "a.svg", Look()) == first


def test_pdf_has_fonts_that_venues_take_and_says_what_it_is(
    circuit: Circuit, tmp_path: Path
) -> None:
    text = saved(circuit, tmp_path / "a.pdf", Look())
    assert b"/Subtype /Type3" not in text
    assert b"/FontFile2" in text  # TrueType, which is what type 42 wraps
    assert b"/Title" in text
    assert b"/Subject" in text
    assert b"/CreationDate" not in text  # the same figure, the same bytes


def test_png_is_as_wide_and_as_fine_as_asked(circuit: Circuit, tmp_path: Path) -> None:
    for columns, inches in ((1, 3.35), (2, 6.9)):
        saved(circuit, tmp_path / "a.png", Look("dark", columns, 100))
        with Image.open(tmp_path / "a.png") as image:
            assert image.width == round(100 * inches)
            assert image.info["Title"] == "A & B"
            assert f"#{image.convert('RGB').tobytes()[:3].hex()}" == DARK.paper


def test_on_a_page_it_follows_its_reader_and_other_programs_see_the_light_one(
    circuit: Circuit, tmp_path: Path
) -> None:
    text = saved(circuit, tmp_path / "a.svg", Look("page")).decode()
    ET.fromstring(text)
    assert "@media (prefers-color-scheme: dark)" in text
    assert f"--hopscope-0: {DARK.lines[0]}" in text
    first = LIGHT.lines[0]
    assert f"stroke: {first}; stroke: var(--hopscope-0, {first})" in text
    with pytest.raises(ConfigError, match="--style page .* only .svg can; for .*a.png choose"):
        saved(circuit, tmp_path / "a.png", Look("page"))


def test_a_name_of_another_kind_or_that_cannot_be_written_is_refused(
    circuit: Circuit, tmp_path: Path
) -> None:
    for suffix in FORMATS:
        check_format(Path(f"a.b{suffix}"))
    for name in ("a", "a.jpg", "a.SVG", "a.svg.gz", ".svg"):
        with pytest.raises(ConfigError, match=rf"ends in .svg, .pdf, .png, not {name}"):
            check_format(Path(name))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnwritable, match="cannot write"):
        save_figure(circuit_figure(circuit), tmp_path / "file" / "loss.svg")


def test_every_colour_of_a_figure_has_a_name(circuit: Circuit) -> None:
    text = themed(svg(circuit_figure(circuit), "salt"))
    bare = re.findall(r"(?:fill|stroke): #[0-9a-f]{6}(?!; (?:fill|stroke): var)", text)
    assert bare == []
    names = set(re.findall(r"var\((--hopscope-\d+),", text))
    assert names
    assert names <= set(re.findall(r"(--hopscope-\d+):", theme(DARK)))
