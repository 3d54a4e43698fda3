"""The page of both papers in a real browser: nothing is cut off, and the console stays silent."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from hopscope.papers.claim import Claim, Finding
from hopscope.papers.results_folder import Results
from hopscope.papers.row import Row
from hopscope.papers.table import Table
from hopscope.papers.target import Target
from hopscope.report.look import Picture
from hopscope.report.paper import paper_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
WIDTHS = (360, 768, 1400)
FLAGS = (  # the frames of a file are files
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--allow-file-access-from-files", "--enable-logging=stderr", "--v=0",
    "--window-size=1600,1000",
)  # fmt: skip

TEXTS = "h1, h2, p, li, dt, dd, th, td"

# A headless window is no narrower than 500 pixels; a frame is as narrow as one likes.
FRAMES = """<!doctype html><title>widths</title>{frames}<output></output><script>
onload = () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const page = frame.contentDocument;
    const spills = one => one.scrollWidth > one.clientWidth;
    return {{
      window: frame.contentWindow.innerWidth,
      page: page.documentElement.scrollWidth,
      room: page.documentElement.clientWidth,
      spilling: [...page.querySelectorAll("{texts}")].filter(spills).map(one => one.textContent),
    }};
  }});
  document.querySelector("output").textContent = JSON.stringify(found);
}};
</script>"""

pytestmark = pytest.mark.skipif(
    BROWSER is None, reason=f"none of {', '.join(BROWSERS)} is on the PATH"
)


def draw(table: Table, others: Callable[[str], Table | None]) -> Sequence[tuple[str, Picture]]:
    wide = Picture("a wide figure", "It is wide.", (16.0, 3.0))
    small = Picture("small", "It is not.", (2.0, 2.0))
    for figure in (wide, small):
        figure.subplots().plot([0, 1])
    return [("wide", wide), ("small", small)]


@pytest.fixture
def text(tmp_path: Path) -> str:
    """A page with what is hard to fit: long names, long words, many columns of words."""
    name = "musat/a-figure-with-a-name-that-does-not-fit-on-the-screen-of-a-phone"
    claim = Claim(
        f"{name}/and-its-claim", f"What `{'a-formula-without-a-break' * 4}` says",
        "§7.1, figure 4 and appendix B.2", "0.123456789 ± 0.000001",
        "The mean over every seed and hop. " * 5, (name,),
        lambda tables: Finding("0.5 " * 20, "under a reading", f"runs {'x' * 90}"),
    )  # fmt: skip
    missing = Claim("chen/one", "Short", "§1", "1", "once", ("chen/none",), claim.judge)
    target = Target(name, "Figure 4: " + "losses " * 20, (Row,), method=name)
    results = Results(tmp_path / "results", {name: target})
    results.save(Table(name, "reduced", (Row(run="one"),), "half of it", machine="m" * 80))
    return paper_page({claim.id: claim, missing.id: missing}, {target.name: target}, results, draw)


def browse(folder: Path, text: str) -> tuple[list[dict[str, Any]], list[str]]:
    """Window, page and what spills over for each of WIDTHS, and what the console says."""
    (folder / "page.html").write_text(text)
    frames = "".join(
        f'<iframe src="page.html" width="{width}" height="800" style="border:0"></iframe>'
        for width in WIDTHS
    )
    (folder / "frames.html").write_text(FRAMES.format(frames=frames, texts=TEXTS))
    assert BROWSER
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom",
         (folder / "frames.html").as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    found = re.search(r"<output>(.*?)</output>", done.stdout, re.DOTALL)
    assert found
    return json.loads(unescape(found[1])), re.findall(r".*CONSOLE.*", done.stderr)


def test_nothing_is_cut_off_on_any_screen(tmp_path: Path, text: str) -> None:
    found, console = browse(tmp_path, text)
    assert [screen["window"] for screen in found] == list(WIDTHS)
    assert [screen for screen in found if screen["page"] > screen["room"]] == []
    assert [screen["spilling"] for screen in found] == [[], [], []]
    assert console == []
    wrong = (  # what is too wide or wrong would be seen
        '<div style="width: 800px">wide</div><script>nowhere()</script>'
        '<p style="width: 9px; overflow-wrap: normal">spilling</p></body>'
    )
    found, console = browse(tmp_path, text.replace("</body>", wrong))
    assert [screen["page"] > screen["room"] for screen in found] == [True, True, False]
    assert [screen["spilling"] for screen in found] == [["spilling"]] * len(WIDTHS)
    assert len(console) == len(WIDTHS)
    assert "nowhere is not defined" in console[0]
