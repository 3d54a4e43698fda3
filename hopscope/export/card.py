"""The model card of a run on a hub: its task, losses and circuit, and how to load and retrain it.

All of the card is read from the run.
"""

import tempfile
from pathlib import Path

from hopscope import __version__
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.saved import saved_circuit
from hopscope.export.released import repository
from hopscope.store import RunFolder
from hopscope.store.checkpoints import earlier_weights, weights_step
from hopscope.store.gallery import about
from hopscope.store.metrics import losses

FIGURE = "circuit.png"

PAGE = """\
---
library_name: hopscope
license: {license}
tags:
- interpretability
- multi-hop
- circuits
- {task}
---
# {name}

{what}
{losses}{circuit}
## Load it

```
pip install '.[hub]'  # in a clone of {repository}
hopscope pull {place}
hopscope show {run}
```

```python
import hopscope
model = hopscope.load("{run}")
```
{again}"""

AGAIN = """
## Make it again

`hopscope train recipe.json` (hopscope {version}), where `recipe.json` is

```json
{recipe}```
{ends}"""


def card(folder: RunFolder, place: str, licence: str) -> dict[str, bytes]:
    """Return the files of the card, by name; `place` is its OWNER/NAME on the hub."""
    circuits = ((seed, saved_circuit(folder, seed)) for seed in folder.recipe.seeds)
    seed, found = next((each for each in circuits if each[1]), (None, None))
    whose = f" of seed {seed}" if len(folder.recipe.seeds) > 1 else ""
    page = PAGE.format(
        license=licence,
        task=folder.recipe.task_kind,
        name=place.partition("/")[2],
        what=what(folder),
        losses=_losses(folder),
        circuit="" if found is None else _circuit(found, whose),
        repository=repository() or "hopscope",
        place=place,
        run=run_name(folder, place),
        again=_again(folder),
    )
    figures = {} if found is None else {FIGURE: _figure(found)}
    return {"README.md": page.encode(), **figures}


def run_name(folder: RunFolder, place: str) -> str:
    """Return the name of the run in the store of those who pull it.

    An ordinary run has the name of its recipe, so that it can be resumed; a gallery model (or a
    copy of one) is named by its place on the hub.
    """
    return folder.manifest.name if about(folder) is None else place.replace("/", "--")


def what(folder: RunFolder) -> str:
    """Return a description of the run in a few lines."""
    recipe, known = folder.recipe, about(folder)
    shape = {name: value for name, value in recipe.shape().items() if value is not None}
    told = ", ".join(f"{name} {value}" for name, value in shape.items())
    seeds = ", ".join(map(str, recipe.seeds))
    lines = [f"Task: {recipe.task_kind}{f' ({told})' if told else ''}. Seeds: {seeds}."]
    if known is not None:
        lines.append(f"{known.what}; {known.origin}.")
    if not folder.manifest.complete:
        stands = f"{recipe.unit} {folder.manifest.step:,} of {recipe.steps:,}"
        lines.append(f"Not complete: it stands at {stands}; `hopscope resume` goes on with it.")
    return "\n".join(lines)


def _losses(folder: RunFolder) -> str:
    """Return a table of the last validation losses up to the step of the weights, per seed."""
    recipe = folder.recipe
    steps, found = losses(folder, "validation")
    until = steps <= weights_step(folder)
    steps, found = steps[until], found[until]
    if not len(steps):
        return ""
    names = recipe.loss_names(found.shape[2])
    rows = [
        f"| {seed} | {' | '.join(f'{value:.4g}' for value in own)} |"
        for seed, own in zip(recipe.seeds, found[-1], strict=True)
    ]
    levels = ", ".join(dict.fromkeys(f"{level:.4g}" for level in recipe.chances))
    chance = f" Guessing: {levels}." if levels else ""
    return "\n".join(
        [
            f"\n## Validation loss after {recipe.unit} {steps[-1]:,}\n",
            f"| seed | {' | '.join(names)} |",
            f"|---{'|---' * len(names)}|",
            *rows,
            f"\nOn fresh examples.{chance}\n",
        ]
    )


def _circuit(circuit: Circuit, whose: str) -> str:
    from hopscope.plots.words import circuit_grid

    grid = circuit_grid(circuit)
    return f"\n## Circuit{whose}\n\n![circuit]({FIGURE})\n\n```\n{grid}\n```\n"


def _again(folder: RunFolder) -> str:
    """Return how to train the run again; empty for planted models."""
    known, ends = about(folder), earlier_weights(folder)
    if known is not None and not known.trained:
        return ""
    version = __version__ if known is None else known.hopscope
    return AGAIN.format(
        version=version, ends=f"\n{ends}\n" if ends else "", recipe=folder.recipe.to_file()
    )


def _figure(circuit: Circuit) -> bytes:
    from hopscope.plots.circuit import circuit_figure
    from hopscope.plots.saving import save_figure

    with tempfile.TemporaryDirectory() as folder:
        return save_figure(circuit_figure(circuit), Path(folder) / FIGURE).read_bytes()
