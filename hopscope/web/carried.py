"""The data of a run in a saved page, which works without a server.

For a training over facts the page has all data that need no weights, for all checkpoints: losses,
role maps, emergence, the first example's attention, and the losses with every head and every path
made uniform. Weights are much larger, so the page has them for some checkpoints only; for these it
can compute, on the first 256 examples, which it also contains. For an n-gram run the page has the
parameters, for a language model's circuit the findings, and for a benchmark its first questions.
For a study it has the measurements, but no weights.
"""

import base64
import gzip
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy

from hopscope.configs import Experiment, Task
from hopscope.display import plain
from hopscope.errors import CircuitError, ConfigError, RunWarning
from hopscope.web.questions import STUDY, CostsQuestion, ExampleQuestion
from hopscope.web.shown import Shown
from hopscope.web.tensors import packed, unpacked
from hopscope.web.trained import Trained

if TYPE_CHECKING:
    from hopscope.models import Transformer
    from hopscope.web.views import Views

WEIGHTS_BYTES = 1_250_000
"""Largest size of all models in a page, as text; the last checkpoint may exceed it."""
EXAMPLES = 256
"""Number of examples in a page, on which losses are also measured in advance."""
ARRAYS = ("losses", "maps", "contents", "emergence", "parameters", "findings")
"""Arrays in a page, if the run has them."""
QUESTIONS = 20
"""Number of a benchmark's questions of each kind in a page."""


def carried(
    views: "Views",
    id_: str,
    seed: int | None = None,
    step: int | None = None,
    room: int = WEIGHTS_BYTES,
) -> dict[str, Any]:
    """Return the data of a saved page for JSON, of one model of a fleet (default: the first).

    The page opens at checkpoint `step` (default: the last). `room` limits the models, in bytes.
    """
    described = views.run(id_, seed)  # raises if there is no such run
    row = next(row for row in views.runs()["rows"] if row["id"] == id_)
    shown = views.shown(id_, seed)
    wanted = [name for name in ARRAYS if name in described["arrays"]]
    found = _arrays(shown, wanted)
    names = [*found]
    described |= {"arrays": names, "at_hand": names, "opens_at": step}
    if "seed" in described:  # the page holds one model of a fleet
        described["seeds"] = [described["seed"]]
    return {
        "row": row,
        "description": described,
        **_more(shown, described, room),
        "arrays": found,
    }


def _arrays(shown: Shown, names: Sequence[str]) -> dict[str, str]:
    """Return the arrays as text, without "contents" (probes) if these cannot be measured."""
    found = {}
    for name in names:
        try:
            found[name] = as_text(shown.arrays(name))
        except CircuitError as error:
            if name != "contents":
                raise
            warnings.warn(f"the page does not show what roles hold: {error}", RunWarning, 2)
    return found


def _more(shown: Shown, described: dict[str, Any], room: int) -> dict[str, Any]:
    """Return the other data of the page, by kind of run."""
    if described["kind"] == STUDY:
        described["task"] |= {"carried": 1}  # the page cannot run the model of a study
        described["counts"] = [EXAMPLES]
        return _measured(shown, described["checkpoints"])
    if isinstance(shown, Trained):
        return _trained(shown, described, room)
    if described["kind"] == "lm":
        described["lm"]["carried"] = min(QUESTIONS, described["lm"]["questions"])
        return {"questions": _questions(shown, described["lm"])}
    if not described["arrays"]:
        raise ConfigError(f"{described['name']} cannot be shown before it is complete")
    return {}


def _trained(trained: Trained, described: dict[str, Any], room: int) -> dict[str, Any]:
    """Return the engine's data, and measurements for the steps whose weights are not included."""
    trained.step(None)  # raises if there is no checkpoint
    steps = _steps(trained, described, room)
    others = [step for step in trained.steps if step not in steps]
    described["task"]["carried"] = EXAMPLES
    return {
        "engine": engine_data(trained.recipe, steps),
        **_measured(trained, others),
    }


def _measured(shown: Shown, steps: list[int]) -> dict[str, Any]:
    """Return measurements for the steps whose weights are not included."""
    return {
        "known": {str(step): _known(shown, step) for step in steps},
        "first": {str(step): _example(shown, step) for step in steps},
    }


def engine_data(
    recipe: Experiment, steps: Mapping[int, dict[str, str]], count: int = EXAMPLES
) -> dict[str, Any]:
    """Return the data of the page's engine: the models of some steps, and examples."""
    from hopscope.web.examples import first_examples

    return {
        "model": model_shape(recipe),
        "examples": as_text(first_examples(recipe.task, count)),
        "steps": {str(step): steps[step] for step in sorted(steps)},
    }


def step_data(model: "Transformer", task: Task) -> dict[str, str]:
    """Return the data of one model: its weights, and each head's mean attention by position."""
    from hopscope.circuits import adapter_of
    from hopscope.web.examples import mean_attention

    mean = mean_attention(adapter_of(model), task)
    return {"weights": as_text(as_carried(model)), "attention": as_text(packed({"mean": mean}))}


def model_shape(recipe: Experiment) -> dict[str, Any]:
    """Return the model's shape, and the task's number of outputs and read positions."""
    model, task = recipe.model, recipe.task
    interface = task.interface()
    return {
        "layers": model.layers,
        "heads": model.heads,
        "d_model": model.d_model,
        "d_head": model.head_width,
        "d_mlp": model.mlp_width if model.mlp else 0,
        "causal": model.causal,
        "norm": model.norm == "layer",
        "outputs": interface.outputs,
        "read": task.labelled_positions() or interface.read,
    }


def _questions(shown: Shown, bench: dict[str, Any]) -> dict[str, list[str]]:
    """Return the first questions of each kind, with their answers."""
    asked = {
        kind: [ExampleQuestion(kind=kind, index=n) for n in range(bench["carried"])]
        for kind in bench["kinds"]
    }
    return {kind: [as_text(shown.example(its)) for its in all_] for kind, all_ in asked.items()}


def _steps(trained: Trained, described: dict[str, Any], room: int) -> dict[int, dict[str, str]]:
    """Return the models of the most important steps that fit into `room` bytes."""
    found: dict[int, dict[str, str]] = {}
    for step in telling(trained.steps, described):
        data = step_data(trained.model(step), trained.task)
        room -= sum(map(len, data.values()))
        if found and room < 0:
            break
        found[step] = data
    return found


def telling(steps: list[int], described: dict[str, Any]) -> list[int]:
    """Order checkpoints by importance: the last, the one at which the page opens, the first ones
    after each hop was learned and after each path emerged, the first.

    >>> emerged = {"1.0:value 0>query": 90.5}
    >>> described = {"opens_at": None, "learned": [120], "emerged": emerged}
    >>> telling([0, 100, 200, 300], described)
    [300, 200, 100, 0]
    """
    learned, emerged = described["learned"] or [], described["emerged"] or {}
    moments = [described["opens_at"], *learned, *emerged.values()]
    after = [
        next((step for step in steps if step >= moment), steps[-1])
        for moment in moments
        if moment is not None
    ]
    return list(dict.fromkeys((steps[-1], *after, steps[0])))


def as_carried(model: "Transformer") -> bytes:
    """Return the weights as safetensors, in float16 where that is exact."""
    tensors = {}
    for name, weight in model.state_dict().items():
        number = weight.detach().cpu().numpy()
        with np.errstate(over="ignore"):
            half = number.astype(np.float16)
        tensors[name] = half if np.array_equal(half, number) else number
    return safetensors.numpy.save(tensors)


def _known(shown: Shown, step: int) -> dict[str, Any]:
    """Return the losses after a step: of the model, and with each head and path made uniform."""
    asked = CostsQuestion(step=step, examples=EXAMPLES)
    rows = plain(list(shown.costs(asked, lambda: None)))
    return {
        "examples": EXAMPLES,
        "clean": rows[0]["clean"],
        "changes": {row["change"]: row["changed"] for row in rows},
    }


def _example(shown: Shown, step: int) -> str:
    """Return the first example after a step, with the attention of all heads."""
    arrays, about = unpacked(shown.example(ExampleQuestion(step=step)))
    return as_text(packed({"attention": arrays["attention"]}, about))


def as_text(data: bytes) -> str:
    """Return the file compressed and in base64; equal files give equal texts."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
