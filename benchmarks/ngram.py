"""Time of the n-gram experiment of Chen et al., compared with a direct PyTorch implementation.

    python benchmarks/ngram.py

hopscope's whole training is timed, with the paper's 57,000 epochs. The direct implementation
follows the paper: in each epoch it computes every position of every chain with autograd,
vectorised over chains and positions, in float32. It is timed for a few epochs of each stage after
a warm-up, and extrapolated.
"""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from rows import print_row
from torch.nn.functional import one_hot

from hopscope.configs import NgramExperiment
from hopscope.ngram import train
from hopscope.ngram.parameters import initial, sets
from hopscope.ngram.process import sample_chains
from hopscope.ngram.trainer import chains_of

WALKED_EPOCHS = 5


def main() -> None:
    with TemporaryDirectory() as temporary:
        print_row(speed(Path(temporary)))


def speed(store: Path) -> dict[str, object]:
    """Seconds of the whole experiment, and of the direct implementation (extrapolated)."""
    experiment = NgramExperiment()
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


def walked_epoch(experiment: NgramExperiment, letters: str) -> float:
    """Seconds of one epoch of the direct implementation: the median of a few epochs."""
    model, chains = experiment.model, chains_of(experiment, 0, "train")
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
    """The loss, computed from all positions; symbols are one-hot, [chain, position, symbol]."""
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


if __name__ == "__main__":
    main()
