"""The n-gram experiment of Chen et al., timed against PyTorch walking all positions.

    python benchmarks/markov.py                  the paper's 57,000 epochs, and the walker's few
    python benchmarks/markov.py --seeds 20       the claims, over seeds
    python benchmarks/markov.py --settings       other stages, parents, alphabets, windows, readings

The walker is what one would write from the paper: every position of every chain in each epoch, by
autograd, vectorised over chains and positions alike, in float32. It is timed over a few epochs of
each stage after a warm-up, and extrapolated.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.nn.functional import one_hot

from hopscope.configs import MarkovExperiment
from hopscope.markov import information
from hopscope.markov.evaluation import approach, choice, compare, gap, growth, said, transfer
from hopscope.markov.learner import drawn
from hopscope.markov.parameters import Parameters, initial, sets
from hopscope.markov.process import sample_chains
from hopscope.markov.run import MarkovRun
from hopscope.markov.training import train

WALKED_EPOCHS = 5
TABLES = 300
PAIRS = 2**20
"""Pairs of windows up to which what heads see is computed."""
SLOPES_AT = (10, 30, 100, 300, 1_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=0, help="measure the claims over these many")
    parser.add_argument("--settings", action="store_true", help="train every other setting once")
    parser.add_argument("--store", type=Path, help="where runs go; unset: a temporary folder")
    chosen = parser.parse_args()
    with TemporaryDirectory() as temporary:
        store = chosen.store or Path(temporary)
        rows = settings(store) if chosen.settings else [speed(store)]
        for row in claims(store, chosen.seeds) if chosen.seeds else rows:
            print(json.dumps(row), flush=True)


def speed(store: Path) -> dict[str, object]:
    """Seconds of the whole experiment, and of the walker's extrapolated."""
    experiment = MarkovExperiment()
    begun = time.perf_counter()
    sample_chains(experiment.process, 10_000, 0)
    sampled = time.perf_counter() - begun
    begun = time.perf_counter()
    run = train(experiment, store)
    trained = time.perf_counter() - begun
    plan = experiment.descent.plan()
    walked = {letters: walked_epoch(experiment, letters) for letters, _ in plan}
    total = sum(walked[letters] * epochs for letters, epochs in plan)
    return {
        "what": "57,000 epochs, 9,000 + 1,000 chains of 100",
        "threads": torch.get_num_threads(),
        "sampling_s": round(sampled, 3),
        "run_s": round(trained, 2),
        "descent_s": run.folder.manifest.seconds,
        "walker_epoch_ms": {letters: round(1e3 * s, 1) for letters, s in walked.items()},
        "walker_extrapolated_s": round(total),
        "ratio": round(total / trained),
        "loss": float(run.losses()[1][-1, 0, 0]),
    }


def walked_epoch(experiment: MarkovExperiment, letters: str) -> float:
    """Seconds of one epoch of the walker: the median of a few."""
    model, chains = experiment.model, drawn(experiment, 0, "train")
    state = {
        name: torch.tensor(v, dtype=torch.float32) for name, v in initial(model).named().items()
    }
    trained = [state[{"C": "c", "W": "w", "a": "a"}[letter]].requires_grad_() for letter in letters]
    symbols = one_hot(torch.from_numpy(chains.tokens).long(), experiment.process.alphabet).float()
    times = []
    for _ in range(WALKED_EPOCHS + 2):
        begun = time.perf_counter()
        loss = walked_loss(state, symbols, model.window, sets(model), experiment.descent.epsilon)
        slopes = torch.autograd.grad(loss, trained)
        with torch.no_grad():
            for value, slope in zip(trained, slopes, strict=True):
                value.sub_(slope, alpha=experiment.descent.lr)
        times.append(time.perf_counter() - begun)
    return float(np.median(times[2:]))


def walked_loss(
    state: dict[str, torch.Tensor],
    symbols: torch.Tensor,
    window: int,
    heads: list[tuple[int, ...]],
    epsilon: float,
) -> torch.Tensor:
    """The loss by walking all positions: symbols are one-hot, [chain, position, symbol]."""
    read, target = symbols[:, :-1], symbols[:, -1]
    share = torch.softmax(state["w"], dim=-1)
    lagged = read.unfold(1, window, 1).flip(-1)  # [chain, position, symbol, lag]
    copies = torch.einsum("hi,bldi->blhd", share, lagged)
    inner = torch.einsum("blhd,bhd->blh", copies[:, :-1], copies[:, -1])
    features = torch.stack([inner[:, :, list(members)].prod(-1) for members in heads], dim=-1)
    squares = state["c"] ** 2
    similar = features @ (squares / squares.sum())
    attention = torch.softmax(state["a"] * similar, dim=1)
    answer = torch.einsum("bl,bld->bd", attention, read[:, window:])
    return -torch.log((answer * target).sum(-1) + epsilon).mean()


def claims(store: Path, seeds: int) -> Iterator[dict[str, object]]:
    """A row for each seed and question."""
    experiment = MarkovExperiment(seeds=tuple(range(seeds)))
    run = train(experiment, store)
    begins = np.cumsum([0, *(epochs for _, epochs in experiment.descent.plan())])
    for seed in experiment.seeds:
        course = run.course(seed)
        selected = choice(
            experiment.model, course.at(int(np.searchsorted(course.epochs, begins[1])))
        )
        last = choice(experiment.model, course.at(-1))
        moments = approach(run, seed)
        found = growth(course, int(begins[2]))
        yield {
            "what": "seed",
            "seed": seed,
            "chosen_lags": selected.lags,
            "share_after_stage_1": selected.share,
            "attention_before": choice(experiment.model, course.at(0)).weights,
            "attention_after": last.weights,
            "a": found.end,
            "slope_by_log_epoch": found.slope,
            "r2": found.straightness,
            "one_over_gap": 1
            / gap(experiment, course.at(-1), drawn(experiment, seed, "validation")),
            "distance_begin": moments[0].distance,
            "distance_end": moments[-1].distance,
        }
        for process, other in transfer(run, seed):
            yield {
                "what": "transfer",
                "seed": seed,
                "length": process.length,
                "alpha": process.alpha,
                "distance": other.distance,
                "matched": other.matched,
                "loss": asdict(other.expected),
            }


SETTINGS: dict[str, dict[str, dict[str, object]]] = {
    "the paper's": {},
    "C and W together": {"descent": {"stages": "CW,a"}},
    "all at once": {"descent": {"stages": "CWa"}},
    "batches of 1,000": {"descent": {"stages": "CWa", "epochs": (5_000,), "batch": 1_000}},
    "uniform start": {"process": {"start": "uniform"}},
    **{f"length {n}": {"process": {"length": n}} for n in (10, 20, 50, 200, 400, 1_000)},
    **{f"alpha {a}": {"process": {"alpha": a}} for a in (0.05, 0.2, 0.5, 1.0)},
    "parent 1": {"process": {"parents": (1,)}},
    "parents 1, 3": {"process": {"parents": (1, 3)}},
    "parents 2, 3": {"process": {"parents": (2, 3)}},
    "parents 1, 2, 3, degree 3": {"process": {"parents": (1, 2, 3)}, "model": {"degree": 3}},
    "parents 1, 2, 3, sharp heads": {
        "process": {"parents": (1, 2, 3)}, "model": {"degree": 3, "own": 8.0},
    },
    **{f"alphabet {d}": {"process": {"alphabet": d}} for d in (2, 5, 8, 10)},
    "alphabet 10, length 400": {"process": {"alphabet": 10, "length": 400}},
    "alphabet 10, length 400, sharp heads": {
        "process": {"alphabet": 10, "length": 400}, "model": {"own": 8.0},
    },
    "window 2": {"model": {"window": 2, "heads": 2}},
    "window 4": {"model": {"window": 4, "heads": 4}},
    "window 6": {"model": {"window": 6, "heads": 6}},
    "epsilon 0.01": {"descent": {"epsilon": 0.01}},
    "the empty set, too": {"model": {"constant": True}},
    "unit copies": {"model": {"unit_copies": True}},
    "cross-entropy of a softmax": {"descent": {"loss": "softmax"}},
    "other weights 0.1": {"model": {"other": 0.1}},
    "the authors' program": {
        "process": {"start": "uniform"},
        "model": {"constant": True, "unit_copies": True, "other": 0.1},
        "descent": {"stages": "CWa", "loss": "softmax", "epochs": (50_000,)},
    },
    "full first layer, unit copies": {
        "model": {"first": "full", "unit_copies": True},
        "descent": {"epochs": (2_000, 10_000, 5_000)},
    },
    "full first layer, all at once": {
        "model": {"first": "full"}, "descent": {"stages": "CWa", "epochs": (10_000,)},
    },
}  # fmt: skip


def settings(store: Path) -> Iterator[dict[str, object]]:
    """What becomes of each setting, with the paper's number of epochs where none is given."""
    for name, fields in SETTINGS.items():
        experiment = MarkovExperiment(**fields)
        begun = time.perf_counter()
        run = train(experiment, store)
        seconds = time.perf_counter() - begun
        state, chains = run.state(0), drawn(experiment, 0, "validation")
        picked = choice(experiment.model, Parameters.of(state))
        found = compare(experiment, said(experiment, state, chains), chains)
        yield {
            "what": "setting",
            "setting": name,
            "seconds": round(seconds, 1),
            "parents": experiment.process.parents,
            "predicted": predicted(experiment),
            "chosen_lags": picked.lags,
            "share": picked.share,
            "attention": picked.weights,
            "a": float(state["a"]),
            "slopes_of_a": slopes(run),
            "loss": asdict(found.seen),
            "expected": asdict(found.expected),
            "distance": found.distance,
            "matched": found.matched,
        }


def predicted(experiment: MarkovExperiment) -> dict[str, tuple[int, ...]]:
    """The winner of stage I by the paper's rule, and seen through the heads as they begin."""
    arguments = (experiment.process, experiment.model, TABLES)
    found = {"paper": information.winner(information.exact(*arguments))}
    if experiment.process.alphabet ** (2 * experiment.model.window) <= PAIRS:
        found["heads"] = information.winner(information.through_heads(*arguments))
    return found


def slopes(run: MarkovRun) -> dict[int, float]:
    """By how much a grows per factor e of the last stage's epochs, from an epoch to its double."""
    experiment, course = run.experiment, run.course(0)
    length = experiment.descent.plan()[-1][1]
    since, a = course.epochs - (experiment.steps - length), course.a
    at = {epoch: float(np.interp(epoch, since, a)) for e in SLOPES_AT for epoch in (e, 2 * e)}
    return {
        epoch: (at[2 * epoch] - at[epoch]) / float(np.log(2))
        for epoch in SLOPES_AT
        if 2 * epoch <= length
    }


if __name__ == "__main__":
    main()
