"""Runs of a language model that nobody has: a benchmark, and what a mechanism has found."""

import json
from typing import Any

from hopscope.configs import Asking, LmBench, Prompts
from hopscope.lm.findings import Proof
from hopscope.store import RunFolder, Store

KIND = Prompts(formulation="equations", hops=2)
OTHER = Prompts(formulation="equations", hops=3)
SPEECHLESS = {"index": 0, "acceptable": ["0", "1"], "answer": None, "said": ["what?"]}
"""An answer that cannot be right."""
HALF = {"mean": 0.5, "low": 0.4, "high": 0.6}
PROOF = {
    "exchange": "x1…", "circuit": HALF, "random": HALF, "more": None, "rest": HALF,
    "everything": HALF, "questions": 3,
}  # fmt: skip
FOUND = {
    "answered": {"right": 3, "of": 4, "interval": [0.2, 0.9], "chance": 0.25},
    "roles": ["query", "answer"], "layers": list(range(29)), "verdict": ["look-ups: stacked"],
    "follows": {"x1": [[HALF] * 29] * 2, "x1…": [[HALF] * 29] * 2},
    "circuit": [{"name": "1.0", "told": "value 0 → answer"}],
    "proof": [Proof.model_validate(PROOF).model_dump()], "elsewhere": [],
}  # fmt: skip


def benchmark(
    store: Store,
    *answers: dict[str, Any],
    kinds: tuple[Prompts, ...] = (KIND, OTHER),
    protocol: Any = "exact",
) -> RunFolder:
    """A benchmark of 30 questions of each kind, with these answers to some of the first."""
    asking = Asking(protocol=protocol)
    folder = store.create(LmBench(model="x", prompts=kinds, questions=30, asking=asking))
    given = [{"kind": kinds[0].label, "correct": "0", **each} for each in answers]
    lines = "".join(f"{json.dumps(each)}\n" for each in given)
    folder.commit({"answers/all.jsonl": lines.encode()})
    return folder


def heads(kind: str) -> dict[str, bytes]:
    """The file of its heads for a kind of question."""
    found = {
        "model": "x", "kind": kind, "questions": 4, "correct": 3, "switched_off": None,
        "routes": [{"route": "key 0 → query", "purpose": "look-up"}], "threshold": [0.3],
        "own": [[[0.1, 0.2], [0.9, 0.1]]], "others": [[[0.1, 0.1], [0.2, 0.1]]],
    }  # fmt: skip
    return {f"heads-{kind}.json": json.dumps(found).encode()}
