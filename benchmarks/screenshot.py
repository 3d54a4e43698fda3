"""The picture of the explorer in README and docs: the demo, seen in a real browser.

python benchmarks/screenshot.py docs/images/explorer.png
"""

import argparse
import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

from hopscope.store import Store
from hopscope.web.address import Address
from hopscope.web.listening import listening
from hopscope.web.policy import Policy
from hopscope.web.serving import Server, explorer, public
from hopscope.web.views import Views

TOKEN = "t" * 43
STATE = "/run/gallery-demo?step=600&head=1.3"
"""The second hop is being learned: its path has just emerged."""
DRAWN = """() => { const { state } = globalThis.hopscope ?? {};
return state?.maps && state.contents && state.example && state.losses; }"""
SIZE = {"width": 1600, "height": 1104}


def main() -> None:
    chosen = argparse.ArgumentParser(description=__doc__)
    chosen.add_argument("out", type=Path)
    chosen.add_argument("--state", default=STATE, help="what stands behind # in the address")
    chosen.add_argument("--scheme", default="light", choices=("light", "dark"))
    asked = chosen.parse_args()
    with TemporaryDirectory() as folder, served(Path(folder)) as site, sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport=SIZE, color_scheme=asked.scheme)
        page.goto(f"{site}/#token={TOKEN}&{asked.state}")
        page.wait_for_function(DRAWN, timeout=120_000)
        page.wait_for_timeout(500)
        page.screenshot(path=asked.out)
        browser.close()


@contextmanager
def served(store: Path) -> Iterator[str]:
    """A server of what comes with hopscope, as long as it is needed."""
    made = explorer(Views(Store(store)), Policy(token=TOKEN, public=public()), print)
    with listening(Address()) as (opened, address):
        server = Server(made)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([opened])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{address.port}"
        finally:
            server.should_exit = True
            thread.join()
            made.end()


if __name__ == "__main__":
    main()
