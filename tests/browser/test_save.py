"""What is saved of the page: pictures that stand alone, tables that no spreadsheet executes."""

import csv
import io
from typing import Any

import numpy as np
import pytest

from hopscope.study import load
from tests.browser.conftest import STATIC
from tests.browser.lookers import opened


def test_a_cell_is_no_formula(blank: Any) -> None:
    cells = ["=1+1", "+1", "-1", "@a", "a,b", 'say "x"', "plain", -0.5, 1e-7, None]
    text = blank.evaluate(
        """async (cells) => {
          const { csv } = await import("/save.js");
          return csv(["a", "b"], cells.map((cell) => [cell, 1]));
        }""",
        cells,
    )
    rows = [row[0] for row in csv.reader(io.StringIO(text))][1:]
    assert rows[:4] == ["'=1+1", "'+1", "'-1", "'@a"]
    assert rows[4:7] == ["a,b", 'say "x"', "plain"]
    assert [float(row) for row in rows[7:9]] == [-0.5, 1e-7]
    assert rows[9] == ""


def test_every_pane_can_be_saved(page: Any, explorer: str) -> None:
    """And the pixels of a map decode to the array: each colour belongs to one share of 255."""
    opened(page, explorer, "/run/gallery-demo?step=500&head=2.0")
    for pane in ("circuit", "heads", "example", "losses", "time"):
        saved = {}
        for kind in ("SVG", "PNG", "CSV"):
            page.locator(f"#pane-{pane} .menu summary").click()
            with page.expect_download() as download:
                page.locator(f"#pane-{pane} .menu button:text('{kind}')").click()
            saved[kind] = download.value
        drawn = saved["SVG"].path().read_text()
        assert drawn.startswith("<svg")
        assert "var(" not in drawn.split("style=")[0]
        assert saved["PNG"].path().read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(saved["CSV"].path().read_text().splitlines()) > 2
        assert saved["CSV"].suggested_filename == f"gallery-demo-{pane}.csv"
    page.route("**/colours.js", lambda its: its.fulfill(path=STATIC / "colours.js"))
    found = np.array(
        page.evaluate(
            """async () => {
              const { shade } = await import("/colours.js");
              const all = Array.from({ length: 256 }, (_, n) => shade(n / 255));
              const key = new Map(all.map((rgb, n) => [rgb.join(), n]));
              const canvas = document.querySelector('.map[data-head="2.0"] canvas');
              const { data } = canvas.getContext("2d").getImageData(0, 0, 5, 5);
              return Array.from({ length: 25 }, (_, n) =>
                key.get([...data.slice(4 * n, 4 * n + 3)].join()) / 255);
            }"""
        )
    ).reshape(5, 5)
    maps = load("gallery/demo", step=500).attention()
    order = ["query", "key 0", "value 0", "key 1", "value 1"]
    wanted = [[maps.between(reader, source)[2, 0] for source in order] for reader in order]
    assert found == pytest.approx(np.array(wanted), abs=0.004)


def test_a_picture_of_maps_ends_below_the_last_map(blank: Any) -> None:
    left_over = """async () => {
      const { picture } = await import("/heat.js");
      const maps = [0, 1].map((down) => ({ name: "a", matrix: [1, 1, 0, 1], across: 0, down }));
      const made = picture(maps, 2, 2, 12), ends = [...made.querySelectorAll("rect")];
      return made.viewBox.baseVal.height - Math.max(...ends.map(({ y }) => y.baseVal.value + 12));
    }"""
    assert blank.evaluate(left_over) == 10  # as much as above the first name
