"""Presets of Musat, *Mechanism and Emergence of Stacked Attention Heads* (ICLR 2025).

Where the paper gives no value, hopscope's default is used, and the source says so.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.papers.preset import Preset

SHARED = {
    "task.kind": "§6",
    "task.chains": "§6: N = 4",
    "task.dim": "§6: K = 4",
    "task.symbols": "§6: i.i.d. standard normal",
    "task.position": "§6: rotary code concatenated to each token",
    "task.base": "Su et al. 2023: 10000",
    "task.order": "§3.1, §6: last hop first, shuffled inside a hop",
    "model.causal": "recipe of Radford et al. 2019",
    "model.norm": "§7.1: layer normalisation",
    "model.d_mlp": "recipe of Radford et al. 2019: 4 × d_model",
    "model.init": "recipe of Radford et al. 2019",
    "model.input_std": "not in the paper; at 0.02 the loss stays on its plateau",
    "training.lr": "§7.1: 1e-3",
    "training.schedule": "not in the paper; constant",
    "training.weight_decay": "§7.1: decoupled, 0.1",
    "training.optimiser": "§7.1: AdamW",
    "training.betas": "Kingma 2014",
    "training.validate_every": "ours; the last 100 steps as in §7.1",
}


@cache
def presets() -> dict[str, Preset[Experiment]]:
    """The presets of Musat (ICLR 2025), by name."""
    sweep = [_sweep(ic, layers) for ic in (True, False) for layers in range(1, 9)]
    readers = [_reader(letter, seed) for seed, letter in enumerate("abc")]
    return {preset.name: preset for preset in (*sweep, *readers, *_emergence())}


def _sweep(curriculum: bool, layers: int) -> Preset[Experiment]:
    """Figure 4: loss by number of layers, with and without implicit curriculum."""
    hops = 5 if curriculum else 3
    kind = "ic" if curriculum else "nonic"
    experiment = Experiment(
        task=Retrieval(hops=hops, curriculum=curriculum),
        model=Model(layers=layers, heads=8, d_model=128),
        training=Training(steps=10_000, batch=512, examples=2**20, checkpoint_every=1_000),
        seeds=tuple(range(8)),
    )
    sources = {
        "task.hops": f"§7: D = {hops}",
        "task.curriculum": "§7",
        "model.layers": "§7: 1 to 8",
        "model.heads": "§7.1: 8",
        "model.d_model": "§7.1: 128",
        "model.mlp": "recipe of Radford et al. 2019",
        "training.steps": "§7.1: 10k",
        "training.batch": "§7.1: 512",
        "training.examples": "§7.1: 2^20",
        "seeds": "§7: 8 transformers for each number of layers",
    }
    words = "implicit curriculum" if curriculum else "the last hop alone"
    summary = f"figure 4: D = {hops}, {words}, {layers} layer{'s' * (layers > 1)}, 8 models"
    return _preset(f"fig4-{kind}-L{layers}", summary, experiment, sources)


def _reader(letter: str, seed: int) -> Preset[Experiment]:
    """Transformers A, B and C of figure 5."""
    experiment = Experiment(
        task=Retrieval(hops=3),
        model=Model(layers=12, heads=1, d_model=128),
        training=Training(steps=24_000, batch=128, examples=2**18),
        seeds=(seed,),
    )
    sources = {
        "task.hops": "§8: D = 3",
        "task.curriculum": "§8.1: IC",
        "model.layers": "§8.1: 12",
        "model.heads": "§8.1: one per layer",
        "model.d_model": "§8.1: 128",
        "model.mlp": "recipe of Radford et al. 2019",
        "training.steps": "§8.1: 24k",
        "training.batch": "§8.1: 128",
        "training.examples": "§8.1: 262k",
    }
    summary = f"figure 5: transformer {letter.upper()}, 12 layers × 1 head, D = 3"
    return _preset(f"transformer-{letter}", summary, experiment, sources)


def _emergence() -> Iterator[Preset[Experiment]]:
    """Yield the presets of transformer D of figures 6 and 7, for several readings of the paper."""
    first = "figures 6, 7: transformer D, 24 layers × 1 head, D = 4, 262k examples"
    yield _transformer_d("transformer-d", first, {"training.examples": "§9.1: 262k"})
    yield _transformer_d(
        "transformer-d-epochs",
        "the other reading of §9.1: 2,048 examples, so that 800 epochs are 6,400 steps",
        {"training.examples": "§9.1: 6400 steps are 800 epochs, so 8 steps of 256"},
        examples=2_048,
    )
    why = "§9.1: 262k in epochs of 8 steps; 256 would be a part of it, accumulated or per device"
    yield _transformer_d(
        "transformer-d-large-batch",
        "the third reading of §9.1: batches of 32,768, so that 262k are 8 steps; 37 PFLOP",
        {"training.examples": "§9.1: 262k", "training.batch": why},
        batch=2**15,
    )
    start = "ours; 0.04 and, where heads write, 0.25 instead of 0.02 and 0.003"
    yield _transformer_d(
        "transformer-d-fan-in",
        "the same with initial weights of 1/√inputs, which the paper does not give",
        {"training.examples": "§9.1: 262k", "model.init": start},
        init="fan-in",
    )


def _transformer_d(
    name: str, summary: str, sources: dict[str, str], examples: int = 2**18, batch: int = 256,
    init: Literal["gpt2", "fan-in"] = "gpt2",
) -> Preset[Experiment]:  # fmt: skip
    experiment = Experiment(
        task=Retrieval(hops=4),
        model=Model(layers=24, heads=1, d_model=512, d_head=16, mlp=False, init=init),
        training=Training(steps=6_400, batch=batch, examples=examples, checkpoint_every=80),
    )
    return _preset(name, summary, experiment, {**_SOURCES_D, **sources})


_SOURCES_D = {
    "task.hops": "§9: D = 4",
    "task.curriculum": "§9: IC",
    "model.layers": "§9.1: 24",
    "model.heads": "§9.1: one per layer",
    "model.d_model": "§9.1: 512",
    "model.d_head": "§9.1: 16",
    "model.mlp": "§9.1: removed",
    "training.steps": "§9.1: 6400",
    "training.batch": "§9.1: 256",
    "training.checkpoint_every": "§9.1: every 80 steps",
}


def _preset(
    name: str, summary: str, experiment: Experiment, sources: dict[str, Any]
) -> Preset[Experiment]:
    return Preset(f"musat/{name}", summary, experiment, {**SHARED, **sources})
