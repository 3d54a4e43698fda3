"""Kill a short training at random moments, resume it each time, compare with the whole one.

    python benchmarks/kill_resume.py --kills 50

Every kill is a SIGKILL of a fresh `hopscope train` process after a random wait. After each, the
run folder must be readable, and verify may find nothing but leftovers of the killed process. At
the end weights and metrics must be the same to the byte as those of a run never killed.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import RunFolder, Store


def experiment(steps: int) -> Experiment:
    return Experiment(
        task=Retrieval(hops=2),
        model=Model(layers=2, heads=2, d_model=32),
        training=Training(
            steps=steps, batch=16, checkpoint_every=20, validate_every=20, validation_examples=64
        ),
    )


def command(config: Path, store: Path) -> list[str]:
    code = "from hopscope.cli.main import main; main()"
    arguments = ["train", str(config), "--store", str(store), "--device", "cpu", "--threads", "1"]
    return [sys.executable, "-c", code, *arguments]


def contents(folder: RunFolder) -> dict[str, bytes]:
    """Every committed file; the manifest itself also holds seconds, which differ."""
    return {name: folder.read(name) for name in folder.manifest.files}


def killed_once(config: Path, store: Path, wait: float) -> bool:
    """Start the training and kill it after the wait; False if it had finished."""
    process = subprocess.Popen(command(config, store), stdout=subprocess.DEVNULL)
    try:
        process.wait(wait)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    if process.returncode:
        raise SystemExit(f"training failed with exit code {process.returncode}")
    return False


def check_readable(store: Path) -> int:
    """The step of the run there is; whatever is in the store must be readable."""
    runs, problems = Store(store).readable()
    damage = [p for run in runs for p in run.verify() if "in no manifest" not in p]
    if problems or damage:
        raise SystemExit(f"unreadable after a kill: {problems + damage}")
    return runs[0].manifest.step if runs else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    random.seed(chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(compare(Path(folder), chosen.kills, chosen.steps)))


def compare(root: Path, kills: int, steps: int) -> dict[str, object]:
    config = root / "experiment.json"
    config.write_text(experiment(steps).canonical_json())
    begun = time.monotonic()
    subprocess.run(command(config, root / "whole"), check=True, stdout=subprocess.DEVNULL)
    seconds = time.monotonic() - begun
    reached, done = [], 0
    while done < kills:
        # Start-up takes a part of the wait, so that some kills fall into it, too.
        if not killed_once(config, root / "cut", random.uniform(0.0, 0.25 * seconds)):
            Store(root / "cut").find("retrieval").remove()
            continue
        done += 1
        reached.append(check_readable(root / "cut"))
    subprocess.run(command(config, root / "cut"), check=True, stdout=subprocess.DEVNULL)
    whole, cut = (contents(Store(root / name).find("retrieval")) for name in ("whole", "cut"))
    return {
        "benchmark": "kill_resume",
        "kills": done,
        "steps": steps,
        "steps_committed_at_each_kill": reached,
        "identical": whole == cut,
        "files": len(whole),
    }


if __name__ == "__main__":
    main()
