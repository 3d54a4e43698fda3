"""Take the picture of the explorer in README and docs: the demo, in a real browser.

python benchmarks/screenshot.py docs/images/explorer.png
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from explorer_server import chromium, started

STATE = "/run/gallery-demo?step=600&head=1.3"
"""The second hop is being learned: its path has just emerged."""
DRAWN = """() => { const { state } = globalThis.hopscope ?? {};
return state?.maps && state.contents && state.example && state.losses; }"""
SIZE = {"width": 1600, "height": 1130}


@contextmanager
def opened(state: str, **page: Any) -> Iterator[Any]:
    """A page of the explorer in this state, completely drawn."""
    with started() as server, chromium() as browser:
        found = browser.new_page(**page)
        server.show(found, state, DRAWN, seconds=240)
        yield found


def main() -> None:
    chosen = argparse.ArgumentParser(description=__doc__)
    chosen.add_argument("out", type=Path)
    chosen.add_argument("--state", default=STATE, help="state after the # in the address")
    chosen.add_argument("--scheme", default="light", choices=("light", "dark"))
    asked = chosen.parse_args()
    with opened(asked.state, viewport=SIZE, color_scheme=asked.scheme) as page:
        page.wait_for_timeout(500)
        page.screenshot(path=asked.out)


if __name__ == "__main__":
    main()
