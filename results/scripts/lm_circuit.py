"""How language models come to their answers: the numbers of docs/lm.md, one JSON row each.

    python results/scripts/lm_circuit.py smollm2-1            one hop with an opening
    python results/scripts/lm_circuit.py smollm2-2            two hops: at chance, refused
    python results/scripts/lm_circuit.py qwen-2               two hops, proved on 200 questions

Needs the models (`hopscope lm pull`). Rows are kept in runs/ as they come: killed, it goes on
where it was. CPU seconds are those of this process, and of the questions measured in it.
"""

import argparse
import json
import resource
import time

import numpy as np

from hopscope.configs import LmCircuit, Prompts, Tracing
from hopscope.errors import NotLearned
from hopscope.lm.circuit import prepare
from hopscope.lm.findings import LmCircuitRun
from hopscope.runs.computing import using_threads
from hopscope.runs.runner import prepared
from hopscope.store import RunFolder

SMOL, QWEN = "smollm2-135m", "qwen2.5-coder-1.5b"


def equations(hops: int) -> Prompts:
    return Prompts(formulation="equations", hops=hops, opening=True)


RECIPES = {
    "smollm2-1": LmCircuit(
        model=SMOL, prompts=equations(1), questions=100, dtype="bfloat16",
        tracing=Tracing(mapped=48, searched=48, proved=200, every=6, gains=0.15, most=16),
    ),
    "smollm2-2": LmCircuit(
        model=SMOL, prompts=equations(2), questions=100, dtype="bfloat16",
    ),
    "qwen-2": LmCircuit(
        model=QWEN, prompts=equations(2), questions=20, dtype="bfloat16",
        tracing=Tracing(mapped=10, searched=10, proved=200, proved_elsewhere=24, every=2,
                        gains=0.1, most=16, given=False),
        elsewhere=Prompts(formulation="lives-with", hops=2, opening=True),
    ),
}  # fmt: skip


class Clock:
    """A row for each piece: CPU seconds for each of its questions."""

    def start(self, folder: RunFolder, step: int) -> None:
        self.recipe, self.step, self.before = folder.recipe_as(LmCircuit), step, _cpu()

    def advance(self, step: int, latest: dict[str, np.ndarray]) -> None:  # noqa: ARG002
        now, phases = _cpu(), [name for name, count in self.recipe.phases for _ in range(count)]
        seconds = (now - self.before) / (step - self.step)
        row = {"phase": phases[step - 1], "question": step, "cpu_seconds_each": round(seconds, 2)}
        print(json.dumps({"what": "lm circuit", "model": self.recipe.model, **row}), flush=True)
        self.step, self.before = step, now

    def stop(self) -> None:
        return None


def _cpu() -> float:
    return time.process_time()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", choices=RECIPES)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    recipe = RECIPES[chosen.which]

    try:
        with using_threads(chosen.threads):
            run = LmCircuitRun(prepared(recipe, lambda: prepare(recipe, "cpu"), None, Clock()))
    except NotLearned as error:
        print(json.dumps({"what": "lm circuit", "which": chosen.which, "refused": str(error)}))
        return
    found = {"what": "lm circuit", "which": chosen.which, **run.findings.to_dict()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({**found, "peak_gb": round(peak, 2)}))


if __name__ == "__main__":
    main()
