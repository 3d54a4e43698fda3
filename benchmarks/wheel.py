"""Build the wheel, install it in a new environment, and print a JSON row on its contents.

Run from a clone: `python benchmarks/wheel.py`. It uses the versions in constraints.txt, some
gigabytes of temporary disk space, and 100 seconds of processor time, mostly to unpack torch.
"""

import os
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections import Counter
from pathlib import Path

from rows import print_row

ROOT = Path(__file__).parents[1]
LIMIT = 0.1
"""The most seconds that `import hopscope` may take."""
IMPORT = (
    "import time; start = time.perf_counter(); import hopscope; print(time.perf_counter() - start)"
)


def call(*words: str | Path, where: Path) -> str:
    """The output of a program, which runs without this clone on its import path."""
    free = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=where, env=free, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, words))} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.stdout


def fresh(folder: Path) -> Path:
    """Create a virtual environment; returns the folder of its programs."""
    venv.create(folder, with_pip=True)
    return folder / "bin"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        room = Path(name)
        clone, programs = room / "clone", fresh(room / "environment")
        call("git", "clone", "-q", ROOT, clone, where=room)
        pip = (programs / "pip", "-q", "--disable-pip-version-check")
        call(*pip, "wheel", "--no-deps", "-w", room, clone, where=room)
        (wheel,) = room.glob("*.whl")
        pins = clone / "constraints.txt"
        (torch,) = (line for line in pins.read_text().splitlines() if line.startswith("torch=="))
        call(*pip, "install", torch, wheel, "-c", pins, where=room)
        shown = call(programs / "hopscope", "circuit", "gallery/demo", where=room)
        assert "value 1 → value 0" in shown, shown
        times = [float(call(programs / "python", "-c", IMPORT, where=room)) for _ in range(5)]
        with zipfile.ZipFile(wheel) as opened:
            parts = Counter[str]()
            for each in opened.infolist():
                parts["/".join(each.filename.split("/")[:2])] += each.compress_size
        row = {
            "wheel": wheel.name, "megabytes": round(wheel.stat().st_size / 1e6, 2),
            "largest": {name: round(size / 1e6, 2) for name, size in parts.most_common(6)},
            "import_seconds": round(min(times), 4), "date": time.strftime("%Y-%m-%d"),
        }  # fmt: skip
        print_row(row)
        assert min(times) < LIMIT, f"import hopscope takes {min(times):.3f} s; expected {LIMIT}"


if __name__ == "__main__":
    main()
