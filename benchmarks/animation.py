"""Record the animation in README and docs: scrubbing through the demo's training, then switching a
head off, in a real browser. Prints a JSON row with its size.

python benchmarks/animation.py docs/images/explorer.gif [--frames FOLDER]
"""

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from rows import print_row
from screenshot import opened

from hopscope.store import gallery

SIZE = {"width": 900, "height": 612}
COLOURS = 96
HEAD = "1.3"
"""This head moves the second symbol; without it, hop 2 is lost and hop 1 stays."""
QUIET = """() => { const { state } = globalThis.hopscope;
return !state.working && !state.asking && (!state.off.length || (state.answer && state.cut)); }"""
CAPTION = """text => {
  let line = document.querySelector("#caption");
  if (!line) {
    line = document.body.appendChild(document.createElement("div"));
    line.id = "caption";
    Object.assign(line.style, { position: "fixed", inset: "0 0 auto 0", height: "46px", zIndex: 99,
      font: "600 19px/46px system-ui, sans-serif", paddingLeft: "24px",
      background: "#1d3557", color: "white" });
  }
  line.textContent = text;
}"""
POINTER = """([x, y]) => {
  let hand = document.querySelector("#hand");
  if (!hand) {
    hand = document.body.appendChild(document.createElement("div"));
    hand.id = "hand";
    Object.assign(hand.style, { position: "fixed", width: "22px", height: "22px", zIndex: 98,
      borderRadius: "50%", border: "3px solid #e76f51", pointerEvents: "none" });
  }
  Object.assign(hand.style, { left: `${x - 14}px`, top: `${y - 14}px` });
}"""
Shot = tuple[int, Image.Image]
"""A picture, and for how many milliseconds it is shown."""


def main() -> None:
    chosen = argparse.ArgumentParser(description=__doc__)
    chosen.add_argument("out", type=Path)
    chosen.add_argument("--frames", type=Path, help="write each frame here, to be looked at")
    asked = chosen.parse_args()
    calm = {"color_scheme": "light", "reduced_motion": "reduce"}
    with opened("/run/gallery-demo?pane=circuit", viewport=SIZE, **calm) as page:
        shots = [*training(page), *switching(page)]
    written(asked.out, shots)
    if asked.frames:
        asked.frames.mkdir(parents=True, exist_ok=True)
        for number, (_, picture) in enumerate(shots):
            picture.save(asked.frames / f"{number:02}.png")
    seconds = sum(time for time, _ in shots) / 1_000
    megabytes = round(asked.out.stat().st_size / 1e6, 3)
    print_row({"picture": asked.out.name, "frames": len(shots), "seconds": seconds,
               "megabytes": megabytes})  # fmt: skip


def training(page: Any) -> Iterator[Shot]:
    """The frames of the training: paths emerge, checkpoint by checkpoint."""
    names = gallery.find("demo").files("checkpoints/")
    steps = [int(name[-20:-12]) for name in names]
    for step in steps:
        page.evaluate(CAPTION, f"Training, step {step:,}: the paths appear one after the other")
        page.evaluate("step => globalThis.hopscope.state.set({ step })", step)
        yield 1_800 if step in (steps[0], steps[-1]) else 260, seen(page)


def switching(page: Any) -> Iterator[Shot]:
    """The frames in which the pointer moves to a head and switches it off, and on again."""
    chip = page.get_by_role("button", name=f"Head {HEAD}", exact=False).last
    box = chip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate(CAPTION, f"Switch head {HEAD} off …")
    for part in (0.0, 0.4, 0.7, 0.9, 1.0):
        page.evaluate(POINTER, [450 + (x - 450) * part, 420 + (y - 420) * part])
        yield 120 if part < 1 else 600, seen(page)
    chip.click()
    page.mouse.move(5, 300)  # so that no tooltip covers the picture
    page.evaluate(CAPTION, f"Without head {HEAD}: hop 2 is lost, hop 1 stays")
    yield 3_600, seen(page)
    chip.click()
    page.mouse.move(5, 300)
    page.evaluate(CAPTION, "Switched on again")
    page.evaluate(POINTER, [-99, -99])
    yield 1_200, seen(page)


def seen(page: Any) -> Image.Image:
    """A screenshot, as soon as the page has finished computing."""
    page.wait_for_function(QUIET, timeout=240_000)
    page.wait_for_timeout(400)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def written(path: Path, shots: list[Shot]) -> None:
    """Write all frames with one palette, so that unchanged parts take no space."""
    some = [picture for _, picture in shots[:: max(1, len(shots) // 6)]] + [shots[-2][1]]
    width, height = some[0].size
    sheet = Image.new("RGB", (width, height * len(some)))
    for number, picture in enumerate(some):
        sheet.paste(picture, (0, number * height))
    palette = sheet.quantize(COLOURS, dither=Image.Dither.NONE)
    frames = [each.quantize(palette=palette, dither=Image.Dither.NONE) for _, each in shots]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=[time for time, _ in shots],
        loop=0, optimize=True,
    )  # fmt: skip


if __name__ == "__main__":
    main()
