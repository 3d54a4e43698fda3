"""What a saved page carries of a run, so that it lives without a server.

Of a training over facts everything that needs no weights is carried for all checkpoints: losses,
role maps, emergence, the first example's attention, and the losses with every head and every path
made uniform. Weights take far more room, and are carried of some checkpoints alone: there the page
computes, on the first 256 examples, which are carried as well. Of an n-gram run the page needs the
parameters and nothing else, of a language model's mechanism the findings, and of a benchmark its
first questions. Of a study the page carries no weights: what was measured of its model.
"""

import base64
import gzip
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy

from hopscope.configs import Experiment, Task
from hopscope.errors import CircuitError, ConfigError, RunWarning
from hopscope.web.questions import STUDY, CostsQuestion, ExampleQuestion
from hopscope.web.tensors import packed, unpacked
from hopscope.web.trained import Trained

if TYPE_CHECKING:
    from hopscope.models import Transformer
    from hopscope.web.views import Views

WEIGHTS_BYTES = 1_250_000
"""Room for models, as text; the last checkpoint is carried even if it takes more."""
EXAMPLES = 256
"""Examples that are carried, and on which losses are measured beforehand."""
ARRAYS = ("losses", "maps", "contents", "emergence", "parameters", "findings")
"""Arrays that are carried, where a run has them."""
QUESTIONS = 20
"""Questions of each kind that are carried of a benchmark."""


def carried(
    views: "Views",
    id_: str,
    seed: int | None = None,
    step: int | None = None,
    room: int = WEIGHTS_BYTES,
) -> dict[str, Any]:
    """The data of a saved page, ready for JSON: of a fleet, of the model with this seed (unset: the
    first). The page opens after this step (unset: the last).
    """
    described = views.run(id_, seed)  # says in one line if there is no such run
    row = _row(views, id_)
    wanted = [name for name in ARRAYS if name in described["arrays"]]
    found = _arrays(views, id_, wanted, seed)
    names = [*found]
    described |= {"arrays": names, "at_hand": names, "opens_at": step}
    if "seed" in described:  # the page holds one model of a fleet
        described["seeds"] = [described["seed"]]
    return {
        "row": row,
        "description": described,
        **_more(views, id_, described, room),
        "arrays": found,
    }


def _arrays(views: "Views", id_: str, names: Sequence[str], seed: int | None) -> dict[str, str]:
    """The arrays that are carried; what roles hold is left out where it cannot be measured."""
    found = {}
    for name in names:
        try:
            found[name] = as_text(views.arrays(id_, name, seed))
        except CircuitError as error:
            if name != "contents":
                raise
            warnings.warn(f"the page does not show what roles hold: {error}", RunWarning, 2)
    return found


def _row(views: "Views", id_: str) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in views.runs()["rows"] if row["id"] == id_)
    return row


def _more(views: "Views", id_: str, described: dict[str, Any], room: int) -> dict[str, Any]:
    """What is carried beside arrays."""
    if described["kind"] == STUDY:
        described["task"] |= {"carried": 1}  # its model is not one that the page can run
        described["counts"] = [EXAMPLES]
        return _measured(views, described, described["checkpoints"])
    folder = views.shelf.folder(id_)
    if described["kind"] == "facts":
        trained = Trained(folder, views.memory, described["seed"])
        return _trained(trained, views, described, room)
    if described["kind"] == "lm":
        described["lm"]["carried"] = min(QUESTIONS, described["lm"]["questions"])
        return {"questions": _questions(views, id_, described["lm"])}
    if not described["arrays"]:
        raise ConfigError(f"{folder.name} has nothing to show before all of it is measured")
    return {}


def _trained(
    trained: Trained, views: "Views", described: dict[str, Any], room: int
) -> dict[str, Any]:
    """What the page computes with, and what it knows of steps whose weights it does not have."""
    trained.step(None)  # says in one line if there is no checkpoint
    steps = _steps(trained, described, room)
    others = [step for step in trained.steps if step not in steps]
    described["task"]["carried"] = EXAMPLES
    return {
        "engine": engine_data(trained.recipe, steps),
        **_measured(views, described, others),
    }


def _measured(views: "Views", described: dict[str, Any], steps: list[int]) -> dict[str, Any]:
    """What the page knows of steps whose weights it does not have."""
    which = described["id"], described.get("seed")
    return {
        "known": {str(step): _known(views, *which, step) for step in steps},
        "first": {str(step): _example(views, *which, step) for step in steps},
    }


def engine_data(
    recipe: Experiment, steps: Mapping[int, dict[str, str]], count: int = EXAMPLES
) -> dict[str, Any]:
    """What the page's engine computes with: the model after some steps, and examples."""
    from hopscope.web.examples import first_examples

    return {
        "model": model_shape(recipe),
        "examples": as_text(first_examples(recipe.task, count)),
        "steps": {str(step): steps[step] for step in sorted(steps)},
    }


def step_data(model: "Transformer", task: Task) -> dict[str, str]:
    """What is carried of one model: its weights, and what each head attends to by position."""
    from hopscope.circuits import adapter_of
    from hopscope.web.examples import mean_attention

    mean = mean_attention(adapter_of(model), task)
    return {"weights": as_text(as_carried(model)), "attention": as_text(packed({"mean": mean}))}


def model_shape(recipe: Experiment) -> dict[str, Any]:
    """What the page must know of a model, beside its weights, and of what it reads and answers."""
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


def _questions(views: "Views", id_: str, bench: dict[str, Any]) -> dict[str, list[str]]:
    """The first questions of each kind, with the answers to them."""
    asked = {
        kind: [ExampleQuestion(kind=kind, index=n) for n in range(bench["carried"])]
        for kind in bench["kinds"]
    }
    return {
        kind: [as_text(views.example(id_, its)) for its in all_] for kind, all_ in asked.items()
    }


def _steps(trained: Trained, described: dict[str, Any], room: int) -> dict[int, dict[str, str]]:
    """The models after the most telling steps, as many as there is room for."""
    found: dict[int, dict[str, str]] = {}
    for step in telling(trained.steps, described):
        data = step_data(trained.model(step), trained.task)
        room -= sum(map(len, data.values()))
        if found and room < 0:
            break
        found[step] = data
    return found


def telling(steps: list[int], described: dict[str, Any]) -> list[int]:
    """Checkpoints in the order of what they tell: the last, the one at which the page opens, those
    by which each hop was learned, those by which each path emerged, the first.

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
    """The weights, as float16 where nothing is lost by it."""
    tensors = {}
    for name, weight in model.state_dict().items():
        number = weight.detach().cpu().numpy()
        with np.errstate(over="ignore"):
            half = number.astype(np.float16)
        tensors[name] = half if np.array_equal(half, number) else number
    return safetensors.numpy.save(tensors)


def _known(views: "Views", id_: str, seed: int | None, step: int) -> dict[str, Any]:
    """Losses after a step: of the model as it is, and with each head and path made uniform."""
    asked = CostsQuestion(seed=seed, step=step, examples=EXAMPLES)
    rows = list(views.costs(id_, asked, lambda: None))
    return {
        "examples": EXAMPLES,
        "clean": rows[0]["clean"],
        "changes": {row["change"]: row["changed"] for row in rows},
    }


def _example(views: "Views", id_: str, seed: int | None, step: int) -> str:
    """The first example after a step, with all attention."""
    arrays, about = unpacked(views.example(id_, ExampleQuestion(seed=seed, step=step)))
    return as_text(packed({"attention": arrays["attention"]}, about))


def as_text(data: bytes) -> str:
    """The file as text: compressed, the same bytes for the same file, in base64."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
