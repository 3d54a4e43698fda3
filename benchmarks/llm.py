"""The exact protocol against transformers' own generate, and a benchmark that is killed.

    python benchmarks/llm.py                      seconds per question, side by side
    python benchmarks/llm.py --kills 20           kill a benchmark at random moments, resume it

Needs the model: `hopscope models pull smollm2-135m`. The peer is what one would write first: a
loop over the same questions that calls `generate` (greedy, up to 16 new tokens) and reads the
answer. That is a single answer; for a few questions the paper's protocol is timed as well, which
samples until an answer is acceptable.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import torch

from hopscope.configs import Asking, LlmBench, Prompts
from hopscope.llm.answers import answered
from hopscope.llm.kept import answers
from hopscope.llm.local import LocalModel
from hopscope.llm.models import load
from hopscope.llm.prompts import Question, questions
from hopscope.store import RunFolder, Store

KINDS = (
    *(Prompts(formulation="equations", hops=hops) for hops in range(1, 6)),
    Prompts(formulation="lives-with"), Prompts(formulation="kingdoms"),
    Prompts(formulation="functions"), Prompts(formulation="relatives"),
)  # fmt: skip
ASK = (
    "import sys; from hopscope.configs import LlmBench; from hopscope.llm.stepper import ask; "
    "from hopscope.llm.backends import backend_of; bench = LlmBench.from_json(sys.argv[1]); "
    "ask(bench, lambda: backend_of(bench), sys.argv[2])"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3, help="the median of which counts")
    parser.add_argument("--precision", default="float32", choices=["float32", "bf16"])
    parser.add_argument("--sampled", type=int, default=4, help="asked by the paper's protocol")
    parser.add_argument("--kills", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.kills:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(killed(Path(folder), chosen.kills)))
        return
    ours, peer = (
        LocalModel(*load("smollm2-135m", chosen.precision, attention), "smollm2-135m")
        for attention in ("fast", "sdpa")
    )
    rows = []
    for kind in KINDS:
        rows.append(speed(ours, peer, kind, chosen.questions, chosen.rounds))
        print(json.dumps({**rows[-1], "precision": chosen.precision}), flush=True)
    print(json.dumps({**whole(rows), "precision": chosen.precision}), flush=True)
    print(json.dumps({**paper(ours, peer, chosen.sampled), "precision": chosen.precision}))


def speed(
    ours: LocalModel, peer: LocalModel, kind: Prompts, count: int, rounds: int
) -> dict[str, Any]:
    """Milliseconds a question: medians over rounds, in turns, after a warm-up."""
    asked = questions(kind, 0, count)
    exact(ours, asked[:4])
    generated(peer, asked[:2])
    turns = [(exact(ours, asked), generated(peer, asked)) for _ in range(rounds)]
    seconds = dict(zip(("exact", "generate"), map(median, zip(*turns, strict=True)), strict=True))
    return {
        "what": "llm protocol",
        "kind": kind.label,
        "questions": count,
        "rounds": rounds,
        "tokens": round(sum(len(ours.tokens(ours.text(each.prompt))) for each in asked) / count),
        **{f"{name}_ms": round(1e3 * s / count, 1) for name, s in seconds.items()},
        "ratio": round(seconds["generate"] / seconds["exact"], 2),
    }


def whole(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A benchmark of all kinds, as many questions of each."""
    ours, peer = (sum(row[name] for row in rows) for name in ("exact_ms", "generate_ms"))
    mean = {"exact_ms": round(ours / len(rows), 1), "generate_ms": round(peer / len(rows), 1)}
    return {"what": "llm protocol", "kind": "all", **mean, "ratio": round(peer / ours, 2)}


def paper(ours: LocalModel, peer: LocalModel, count: int) -> dict[str, Any]:
    """What the exact protocol replaces: sampling by `generate` until an acceptable answer."""
    asked = questions(KINDS[0], 0, count)
    exact(ours, asked)
    seconds = {"exact": exact(ours, asked)}
    torch.manual_seed(0)
    begun = time.perf_counter()
    samples = [sampled(peer, each) for each in asked]
    seconds["generate"] = time.perf_counter() - begun
    return {
        "what": "llm protocol",
        "kind": f"{KINDS[0].label}, sampled until acceptable",
        "questions": count,
        "samples": round(sum(samples) / count, 1),
        **{f"{name}_ms": round(1e3 * s / count, 1) for name, s in seconds.items()},
        "ratio": round(seconds["generate"] / seconds["exact"], 2),
    }


@torch.inference_mode()
def sampled(local: LocalModel, question: Question) -> int:
    """Samples until one is acceptable, or as many as the benchmark allows."""
    text, most = local.text(question.prompt), Asking().tries
    tokens = local.tokenizer(text, return_tensors="pt", add_special_tokens=False)
    length = tokens["input_ids"].shape[1]
    for sample in range(1, most + 1):
        said = local.model.generate(
            **tokens, max_new_tokens=local.max_tokens, do_sample=True, top_k=0, temperature=1.0
        )
        words = local.tokenizer.decode(said[0, length:], skip_special_tokens=True)
        if answered(words, question.acceptable) is not None:
            return sample
    return most


def exact(local: LocalModel, asked: list[Question]) -> float:
    begun = time.perf_counter()
    local.probabilities([each.prompt for each in asked], [each.acceptable for each in asked])
    return time.perf_counter() - begun


@torch.inference_mode()
def generated(local: LocalModel, asked: list[Question]) -> float:
    begun = time.perf_counter()
    for each in asked:
        tokens = local.tokenizer(
            local.text(each.prompt), return_tensors="pt", add_special_tokens=False
        )
        local.model.generate(**tokens, max_new_tokens=local.max_tokens, do_sample=False)
    return time.perf_counter() - begun


def killed(folder: Path, kills: int) -> dict[str, object]:
    """The same benchmark left alone and killed at random moments: are the answers the same?"""
    bench = LlmBench(
        model="smollm2-135m", prompts=(Prompts(formulation="equations", hops=1),), questions=500,
        asking=Asking(),
    )  # fmt: skip
    command = [sys.executable, "-c", ASK, bench.canonical_json()]
    subprocess.run([*command, str(folder / "whole")], check=True)
    done = 0
    while done < kills:
        process = subprocess.Popen([*command, str(folder / "killed")])
        try:
            process.wait(random.uniform(4, 9))
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            done += 1
    subprocess.run([*command, str(folder / "killed")], check=True)
    whole, other = (Store(folder / name).create(bench) for name in ("whole", "killed"))
    return {
        "what": "llm kills",
        "kills": done,
        "questions": len(answers(other)),
        "same_questions": _asked(other) == _asked(whole),
        "identical": answers(other) == answers(whole),
        "verified": other.verify() == [],
    }


def _asked(folder: RunFolder) -> list[tuple[str, int]]:
    return [(each["kind"], each["index"]) for each in answers(folder)]


if __name__ == "__main__":
    main()
