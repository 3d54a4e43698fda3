"""Seconds per question: the exact protocol compared with transformers' generate.

    python benchmarks/lm.py

Needs the model: `hopscope lm pull smollm2-135m`. The comparison is the obvious program: a loop over
the same questions that calls `generate` (greedy, up to 16 new tokens) and reads the answer. That
gives a single answer; for a few questions, the paper's protocol is also timed, which samples until
an answer is acceptable. Times are CPU time of one thread.
"""

import argparse
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch
from rows import print_row

from hopscope.configs import Asking, Prompts
from hopscope.lm.model import LanguageModel, load
from hopscope.lm.prompts import Question, answered, questions
from hopscope.lm.scoring import probabilities

KINDS = (
    *(Prompts(formulation="equations", hops=hops) for hops in range(1, 6)),
    Prompts(formulation="lives-with"), Prompts(formulation="kingdoms"),
    Prompts(formulation="functions"), Prompts(formulation="relatives"),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3, help="the median of which counts")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--sampled", type=int, default=4, help="asked by the paper's protocol")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    model = load("smollm2-135m", chosen.dtype, "cpu")
    rows = []
    for kind in KINDS:
        rows.append(speed(model, kind, chosen.questions, chosen.rounds))
        print_row({**rows[-1], "dtype": chosen.dtype})
    print_row({**whole(rows), "dtype": chosen.dtype})
    print_row({**paper(model, chosen.sampled), "dtype": chosen.dtype})


def speed(model: LanguageModel, kind: Prompts, count: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of CPU time per question: medians over rounds in turns, after a warm-up."""
    asked = questions(kind, 0, count)
    exact(model, asked[:4])
    generated(model, asked[:2])
    turns = [(exact(model, asked), generated(model, asked)) for _ in range(rounds)]
    seconds = dict(zip(("exact", "generate"), map(median, zip(*turns, strict=True)), strict=True))
    return {
        "what": "lm protocol",
        "kind": kind.label,
        "questions": count,
        "rounds": rounds,
        "tokens": round(sum(len(model.tokens(model.text(each.prompt))) for each in asked) / count),
        **{f"{name}_ms": round(1e3 * s / count, 1) for name, s in seconds.items()},
        "ratio": round(seconds["generate"] / seconds["exact"], 2),
    }


def whole(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The mean over all kinds, with the same number of questions of each."""
    ours, peer = (sum(row[name] for row in rows) for name in ("exact_ms", "generate_ms"))
    mean = {"exact_ms": round(ours / len(rows), 1), "generate_ms": round(peer / len(rows), 1)}
    return {"what": "lm protocol", "kind": "all", **mean, "ratio": round(peer / ours, 2)}


def paper(model: LanguageModel, count: int) -> dict[str, Any]:
    """Time of the paper's protocol, which samples with `generate` until an acceptable answer."""
    asked = questions(KINDS[0], 0, count)
    exact(model, asked)
    seconds = {"exact": exact(model, asked)}
    torch.manual_seed(0)
    begun = time.process_time()
    samples = [sampled(model, each) for each in asked]
    seconds["generate"] = time.process_time() - begun
    return {
        "what": "lm protocol",
        "kind": f"{KINDS[0].label}, sampled until acceptable",
        "questions": count,
        "samples": round(sum(samples) / count, 1),
        **{f"{name}_ms": round(1e3 * s / count, 1) for name, s in seconds.items()},
        "ratio": round(seconds["generate"] / seconds["exact"], 2),
    }


@torch.inference_mode()
def sampled(local: LanguageModel, question: Question) -> int:
    """The number of samples until one is acceptable, at most as many as the benchmark allows."""
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


def exact(local: LanguageModel, asked: list[Question]) -> float:
    begun = time.process_time()
    probabilities(local, asked)
    return time.process_time() - begun


@torch.inference_mode()
def generated(local: LanguageModel, asked: list[Question]) -> float:
    begun = time.process_time()
    for each in asked:
        tokens = local.tokenizer(
            local.text(each.prompt), return_tensors="pt", add_special_tokens=False
        )
        local.model.generate(**tokens, max_new_tokens=local.max_tokens, do_sample=False)
    return time.process_time() - begun


if __name__ == "__main__":
    main()
