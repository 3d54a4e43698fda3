"""Build the gallery, the models that come with hopscope (docs/runs.md), from a store of runs.

    python benchmarks/gallery.py --store runs --to hopscope/gallery [--only demo]
    python benchmarks/gallery.py --circuits --to hopscope/gallery [--only demo]
    python benchmarks/gallery.py --explorer --to hopscope/gallery [--only demo]
    python benchmarks/gallery.py --release dist/gallery

The demo and the n-gram experiment are trained unless the store has them (about a minute). The store
must already have transformers A, B and C (`hopscope train musat/transformer-a`, an hour or two
each), transformer D (a run of `hopscope papers run musat/fig7-seeds`), the model nearest to figure
5 (a run of `hopscope papers run musat/variants`) and the model with three heads (a run of
`hopscope papers run musat/variants-long --protocol full`).

An entry is an ordinary run folder: weights rounded to float16, no optimiser state, metrics, the
circuit of the rounded weights, about.json. With --circuits nothing is trained: existing entries are
searched again with this version, and nothing else changes. With --explorer, the data that the page
shows first is computed for existing entries: the account of the circuit, role maps and probes at
all checkpoints, emergence, the true paths of the planted model. With --release, the index of the
models outside of the package and a zip of each are written for the release (PUBLISHING.md). Prints
a JSON row per model.
"""

import argparse
import json
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rows import print_row
from torch import Tensor

from hopscope import __version__
from hopscope.circuits import Circuit, discover, examples_of
from hopscope.circuits.saved import EMERGENCE
from hopscope.configs import Experiment, NgramExperiment, Recipe, Retrieval, Task, Training
from hopscope.errors import RunMissing
from hopscope.export.released import asset
from hopscope.models import Transformer
from hopscope.models.planted import planted
from hopscope.ngram import train as train_ngram
from hopscope.ngram.evaluation import compare, model_answers
from hopscope.ngram.run import NgramRun
from hopscope.ngram.trainer import chains_of
from hopscope.papers import preset
from hopscope.papers.musat.experiments import STEPS_D, larger_seeds
from hopscope.papers.musat.variants import LONG, variant_of
from hopscope.runs.checkpoint import to_safetensors, weights_at
from hopscope.store import RunFolder, Store
from hopscope.store.checkpoints import checkpoint_name
from hopscope.store.files import sha256
from hopscope.store.gallery import ABOUT, INDEX, About, Indexed
from hopscope.store.gallery import about as gallery_about
from hopscope.store.lock import LOCK
from hopscope.store.manifest import MANIFEST
from hopscope.study import RunStudy
from hopscope.training import Run, train
from hopscope.web.described import PLANTED_FILE, in_names
from hopscope.web.stories import STORIES
from hopscope.web.trained import KEPT_FILES

FRESH = 2_048
"""The number of examples on which losses are measured."""
CIRCUIT = "circuit.json"
NEAREST = "fan-in warm-up-cosine base-10"
"""The variant, with seed 0, that `results/musat/variants-nearest.svg` shows."""
IN_PACKAGE = {"demo", "ngram", "planted"}
"""The models in the wheel; `hopscope pull` downloads the others."""
SEARCHES = 3
"""The number of independent searches for the stability of components."""
ROUNDED = "rounded to float16, so that the package stays small, and computed with in float32"
AS_THEY_WERE = "in float64, as they were: they are few"


@dataclass(frozen=True)
class Entry:
    """The contents of a gallery model."""

    what: str
    recipe: Recipe
    files: dict[str, bytes]
    step: int
    exact_loss: float
    state: dict[str, Any] = field(default_factory=dict)
    """The fields of the manifest about the training."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("runs"))
    parser.add_argument("--to", type=Path, default=Path("hopscope/gallery"))
    parser.add_argument("--only", choices=ENTRIES, action="append")
    parser.add_argument("--circuits", action="store_true")
    parser.add_argument("--explorer", action="store_true")
    parser.add_argument("--release", type=Path)
    chosen = parser.parse_args()
    if chosen.release is not None:
        release(chosen.to, chosen.release)
        return
    for name in chosen.only or ENTRIES:
        if not chosen.circuits and not chosen.explorer:
            print_row(build(name, ENTRIES[name](chosen), chosen.to))
        if chosen.circuits:
            print_row(searched(RunFolder(chosen.to / name)))
        if chosen.explorer or not chosen.circuits:
            print_row(explored(RunFolder(chosen.to / name)))


def release(gallery: Path, to: Path) -> None:
    """Write the index of the models outside of the package, and their zip files."""
    to.mkdir(parents=True, exist_ok=True)
    index = {}
    for name in ENTRIES.keys() - IN_PACKAGE:
        folder = RunFolder(gallery / name)
        about = gallery_about(folder)
        assert about is not None
        size = sum(entry.size for entry in folder.manifest.files.values())
        digest = sha256(folder.path.joinpath(MANIFEST).read_bytes())
        index[name] = Indexed(sha256=digest, size=size, what=about.what).model_dump()
        with zipfile.ZipFile(to / asset(name), "w", zipfile.ZIP_DEFLATED) as file:
            for inner in (MANIFEST, *folder.manifest.places):
                file.write(folder.path / inner, inner)
        print_row({"model": name, "asset": asset(name), **index[name]})
    text = json.dumps(index, indent=1, sort_keys=True) + "\n"
    (gallery / INDEX.name).write_text(text, encoding="utf-8")


def demo(chosen: argparse.Namespace) -> Entry:
    run = train(preset("demo").recipe, chosen.store, device="cpu")
    what = "the demo: two hops, with the checkpoints at which its circuit emerges"
    return of_run(run, what, {*range(0, 1_501, 100), *range(1_800, 2_401, 300), 2_500})


@dataclass(frozen=True)
class Trained:
    """A gallery model from a run that must be in the store."""

    what: str
    recipe: Experiment
    how: str
    """The command that trains the model."""
    best: bool = True
    """Whether the best late checkpoint is used, or the last."""

    def __call__(self, chosen: argparse.Namespace) -> Entry:
        store = Store(chosen.store)
        if not store.has_complete(self.recipe):
            raise RunMissing(
                f"{store.root} has no complete run {self.recipe.run_name()}: "
                f"`{self.how} --store {store.root}` trains it"
            )
        run = Run(store.create(self.recipe))
        step = RunStudy(run).best_late_checkpoint().step if self.best else run.checkpoints[-1]
        return of_run(run, self.what, {step})


def by_hand(_: argparse.Namespace) -> Entry:
    task = Retrieval(hops=3, chains=4, dim=64, symbols="sphere")
    made = planted(task)
    # A run needs training settings: these are the shortest, and no training took place.
    never = Training(steps=1, batch=1, examples=1, validation_examples=1, precision="float32")
    recipe = Experiment(task=task, model=made.model.config, training=never)
    weights = checkpoint(made.model.state_dict(), 0)
    what = "three hops in three layers, the fewest there can be: a circuit that is known exactly"
    return Entry(what, recipe, weights, 0, loss(made.model, task))


def ngram(chosen: argparse.Namespace) -> Entry:
    run = train_ngram(NgramExperiment(), chosen.store)
    folder = run.folder
    files = {name: folder.read(name) for name in folder.manifest.files}
    what = "the n-gram experiment of Chen et al. (NeurIPS 2024), from first to last epoch"
    return Entry(what, run.recipe, files, run.checkpoints[-1], ngram_loss(run), state(folder))


ENTRIES: Mapping[str, Callable[[argparse.Namespace], Entry]] = {
    "demo": demo,
    **{
        f"transformer-{letter}": Trained(
            f"transformer {letter.upper()} of Musat (ICLR 2025): three hops, at its best late "
            "checkpoint",
            preset(f"musat/transformer-{letter}").recipe,
            f"hopscope train musat/transformer-{letter}",
        )
        for letter in "abc"
    },
    "transformer-d-fan-in": Trained(
        "transformer D of Musat (ICLR 2025), with initial weights of 1/√inputs: four hops, at its "
        "best late checkpoint",
        larger_seeds(STEPS_D)[0],
        "hopscope papers run musat/fig7-seeds",
    ),
    "figure-5": Trained(
        f"the model nearest to figure 5 of Musat (ICLR 2025): three hops, read as {NEAREST!r}",
        variant_of(NEAREST).experiment(seed=0),
        "hopscope papers run musat/variants",
        best=False,
    ),
    "three-heads": Trained(
        f"three hops with three heads, the fewest: read as {NEAREST!r}, {LONG:,} steps",
        variant_of(NEAREST).experiment(seed=0, steps=LONG),
        "hopscope papers run musat/variants-long --protocol full",
        best=False,
    ),
    "planted": by_hand,
    "ngram": ngram,
}


def of_run(run: Run, what: str, steps: Iterable[int]) -> Entry:
    """An entry with some checkpoints of a run over facts, rounded."""
    kept = sorted(steps)
    files = {name: run.folder.read(name) for name in run.folder.files("metrics/")}
    for step in kept:
        weights = weights_at(run.folder, step)
        files |= checkpoint(weights, step)
    exact = loss(run.model_at(kept[-1]), run.recipe.task)
    return Entry(what, run.recipe, files, kept[-1], exact, state(run.folder))


def checkpoint(weights: dict[str, Tensor], step: int) -> dict[str, bytes]:
    """A checkpoint with weights rounded to float16."""
    rounded = {name: weight.half() for name, weight in weights.items()}
    assert all(weight.isfinite().all() for weight in rounded.values()), "too large for float16"
    return {checkpoint_name(step): to_safetensors(rounded)}


def state(folder: RunFolder) -> dict[str, Any]:
    return folder.manifest.model_dump(include={"step", "precision", "seconds"})


def build(name: str, entry: Entry, to: Path) -> dict[str, object]:
    """Write an entry, replacing an existing one; returns a row that describes it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Store(scratch).create(entry.recipe)
        folder.commit(entry.files, complete=True, **entry.state)
        about = described(folder, entry)
        text = about.model_dump_json(indent=1) + "\n"
        folder.commit({**circuit(folder), ABOUT: text.encode()})
        shutil.rmtree(to / name, ignore_errors=True)
        shutil.copytree(folder.path, to / name)
    files = folder.manifest.files
    megabytes = round(sum(each.size for each in files.values()) / 1e6, 2)
    return {"model": name, "files": len(files), "MB": megabytes, **about.model_dump()}


def described(folder: RunFolder, entry: Entry) -> About:
    if isinstance(entry.recipe, NgramExperiment):
        weights, now = AS_THEY_WERE, ngram_loss(NgramRun(folder))
    else:
        run = Run(folder)
        weights, now = ROUNDED, loss(run.model, run.recipe.task)
    return About(
        what=entry.what, trained=bool(entry.state), run=entry.recipe.run_name(), step=entry.step,
        unit=entry.recipe.unit, hopscope=__version__, weights=weights,
        exact_loss=entry.exact_loss, loss=now,
    )  # fmt: skip


def searched(folder: RunFolder) -> dict[str, object]:
    """Search an entry again with this version of hopscope; returns a row with the changes."""
    started = time.perf_counter()
    found = circuit(folder)
    row: dict[str, object] = {"model": folder.path.name, "hopscope": __version__}
    if not found:
        return row | {"circuit": None}
    before, after = (Circuit.from_json(it) for it in (folder.read(CIRCUIT), found[CIRCUIT]))
    folder.commit(found)
    return row | {
        "same paths": before.paths == after.paths,
        "same rows": _rows(before) == _rows(after),
        "recovered before": round(before.recovered(), 3),
        "recovered": round(after.recovered(), 3),
        "paths": len(after.paths),
        "seconds": round(time.perf_counter() - started, 1),
    }


def _rows(found: Circuit) -> set[object]:
    """The attention rows of a circuit, each with its target."""
    return {(row, each.target) for each in found.components for row in each.rows}


def explored(folder: RunFolder) -> dict[str, object]:
    """Save the data that the page shows first with an entry; returns a row with its sizes."""
    row: dict[str, object] = {"model": folder.path.name}
    if isinstance(folder.recipe, NgramExperiment):
        return row  # an n-gram run has only parameters
    run = Run(folder)
    model = RunStudy(run)
    model.patch()
    seed = run.recipe.seeds[0]
    files = {KEPT_FILES[name]: STORIES[name](folder, seed, lambda: None) for name in KEPT_FILES}
    if len(run.checkpoints) > 1:
        files[EMERGENCE] = json.dumps(model.emergence().to_dict()).encode()
    about = gallery_about(folder)
    if about is not None and not about.trained and isinstance(run.recipe.task, Retrieval):
        paths = planted(run.recipe.task).paths
        files[PLANTED_FILE] = json.dumps([in_names(path) for path in paths]).encode()
    folder.commit(files)
    (folder.path / LOCK).unlink()  # must not be part of the package
    return row | {name: len(data) for name, data in files.items()}


def circuit(folder: RunFolder) -> dict[str, bytes]:
    """The file of the circuit, found in the rounded weights."""
    if isinstance(folder.recipe, NgramExperiment):
        return {}
    run = Run(folder)
    return {CIRCUIT: discover(run.model, run.recipe.task, searches=SEARCHES).to_bytes()}


@torch.no_grad()
def loss(model: Transformer, task: Task) -> float:
    """The mean loss over hops, on fresh examples."""
    examples = examples_of(task, FRESH, purpose="measurement")
    return float(examples.losses(model(examples.inputs)).mean())


def ngram_loss(run: NgramRun) -> float:
    """The mean loss on the validation chains."""
    experiment, seed = run.recipe, run.recipe.seeds[0]
    chains = chains_of(experiment, seed, "validation")
    return compare(
        experiment, model_answers(experiment, run.state(seed), chains), chains
    ).seen.model


if __name__ == "__main__":
    main()
