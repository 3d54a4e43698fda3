"""The picture of the explorer in README and docs: the demo, seen in a real browser.

python benchmarks/screenshot.py docs/images/explorer.png
"""

import argparse
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from explorer_server import started
from playwright.sync_api import sync_playwright

STATE = "/run/gallery-demo?step=600&head=1.3"
"""The second hop is being learned: its path has just emerged."""
DRAWN = """() => { const { state } = globalThis.hopscope ?? {};
return state?.maps && state.contents && state.example && state.losses; }"""
SIZE = {"width": 1600, "height": 1130}


def main() -> None:
    chosen = argparse.ArgumentParser(description=__doc__)
    chosen.add_argument("out", type=Path)
    chosen.add_argument("--state", default=STATE, help="what stands behind # in the address")
    chosen.add_argument("--scheme", default="light", choices=("light", "dark"))
    asked = chosen.parse_args()
    with (
        TemporaryDirectory() as folder,
        started(Path(folder)) as server,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme=asked.scheme)
        page.goto(f"http://127.0.0.1:{server.port}/#token={server.token}&{asked.state}")
        page.wait_for_function(DRAWN, timeout=120_000)
        page.wait_for_timeout(500)
        page.screenshot(path=asked.out)
        browser.close()


if __name__ == "__main__":
    main()
