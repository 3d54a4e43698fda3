"""What a saved page carries of a run, so that it lives without a server.

Of a training over facts everything that needs no weights is carried for all checkpoints: losses,
role maps, emergence, the first example's attention, and the losses with every head and every path
made uniform. Weights take far more room, and are carried (as float16) of some checkpoints alone:
there the page computes. Of an n-gram run the page needs the parameters and nothing else, of a
language model's mechanism the findings, and of a benchmark its first questions.
"""

import base64
import gzip
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors.numpy

from hopscope.circuits.circuit import Circuit
from hopscope.errors import ConfigError
from hopscope.web.questions import CostsQuestion, ExampleQuestion
from hopscope.web.tables import circuit_changes, engine_tables
from hopscope.web.tensors import packed, unpacked
from hopscope.web.trained import Trained

if TYPE_CHECKING:
    from hopscope.web.views import Views

WEIGHTS_BYTES = 1_250_000
"""Room for weights, as text; the last checkpoint is carried even if it takes more."""
KNOWN_EXAMPLES = 256
"""Examples on which losses are measured beforehand."""
ARRAYS = ("losses", "maps", "contents", "emergence", "parameters", "findings")
"""Arrays that are carried, where a run has them."""
QUESTIONS = 20
"""Questions of each kind that are carried of a benchmark."""


def carried(views: "Views", id_: str, room: int = WEIGHTS_BYTES) -> dict[str, Any]:
    """The data of a saved page, ready for JSON."""
    row, described = _row(views, id_), views.run(id_)
    names = [name for name in ARRAYS if name in described["arrays"]]
    described |= {"arrays": names, "at_hand": names}
    if "seed" in described:  # the page holds one model of a fleet
        described["seeds"] = [described["seed"]]
    return {
        "row": row,
        "description": described,
        **_more(views, id_, described, room),
        "arrays": {name: _text(views.arrays(id_, name, None)) for name in names},
    }


def _row(views: "Views", id_: str) -> dict[str, Any]:
    views.shelf.folder(id_)  # says in one line if there is no such run
    row: dict[str, Any] = next(row for row in views.runs()["rows"] if row["id"] == id_)
    return row


def _more(views: "Views", id_: str, described: dict[str, Any], room: int) -> dict[str, Any]:
    """What is carried beside arrays."""
    folder = views.shelf.folder(id_)
    if described["kind"] == "facts":
        return _trained(Trained(folder, views.memory), views, described, room)
    if described["kind"] == "llm":
        described["llm"]["carried"] = min(QUESTIONS, described["llm"]["questions"])
        return {"questions": _questions(views, id_, described["llm"])}
    if not described["arrays"]:
        raise ConfigError(f"{folder.name} has nothing to show before all of it is measured")
    return {}


def _trained(
    trained: Trained, views: "Views", described: dict[str, Any], room: int
) -> dict[str, Any]:
    """What the page computes with, and what it knows of steps whose weights it does not have."""
    trained.step(None)  # says in one line if there is no checkpoint
    weights = _weights(trained, described, room)
    others = [step for step in trained.steps if str(step) not in weights]
    return {
        "engine": engine_tables(trained.recipe),
        "circuit": _circuit(trained.circuit),
        "weights": weights,
        "known": {str(step): _known(views, described["id"], step) for step in others},
        "examples": {str(step): _example(views, described["id"], step) for step in others},
    }


def _questions(views: "Views", id_: str, bench: dict[str, Any]) -> dict[str, list[str]]:
    """The first questions of each kind, with the answers to them."""
    asked = {
        kind: [ExampleQuestion(kind=kind, index=n) for n in range(bench["carried"])]
        for kind in bench["kinds"]
    }
    return {kind: [_text(views.example(id_, its)) for its in all_] for kind, all_ in asked.items()}


def _weights(trained: Trained, described: dict[str, Any], room: int) -> dict[str, str]:
    """The weights after the most telling steps, as many as there is room for."""
    found: dict[int, str] = {}
    for step in telling(trained.steps, described):
        text = _text(_halves(trained, step))
        if found and sum(map(len, found.values())) + len(text) > room:
            break
        found[step] = text
    return {str(step): found[step] for step in sorted(found)}


def telling(steps: list[int], described: dict[str, Any]) -> list[int]:
    """Checkpoints in the order of what they tell: the last, those by which each hop was learned,
    those by which each path emerged, the first.

    >>> telling([0, 100, 200, 300], {"learned": [120], "emerged": {"1.0:value 0>query": 90.5}})
    [300, 200, 100, 0]
    """
    moments = [*(described["learned"] or []), *(described["emerged"] or {}).values()]
    after = [
        next((step for step in steps if step >= moment), steps[-1])
        for moment in moments
        if moment is not None
    ]
    return list(dict.fromkeys((steps[-1], *after, steps[0])))


def _halves(trained: Trained, step: int) -> bytes:
    """The weights as float16; an error where that is too small for them."""
    tensors = {}
    for name, weight in trained.model(step).state_dict().items():
        number = weight.detach().cpu().numpy()
        tensors[name] = number.astype(np.float16)
        if not np.isfinite(tensors[name]).all():
            raise ConfigError(
                f"{trained.folder.name} has weights up to {np.abs(number).max():g} in {name}, "
                "which float16 cannot hold: open it with `hopscope view`"
            )
    return safetensors.numpy.save(tensors)


def _circuit(circuit: Circuit | None) -> list[dict[str, Any]] | None:
    return None if circuit is None else circuit_changes(circuit)


def _known(views: "Views", id_: str, step: int) -> dict[str, Any]:
    """Losses after a step: of the model as it is, and with each head and path made uniform."""
    asked = CostsQuestion(step=step, examples=KNOWN_EXAMPLES)
    rows = list(views.costs(id_, asked, lambda: False))
    return {
        "examples": KNOWN_EXAMPLES,
        "clean": rows[0]["clean"],
        "changes": {row["change"]: row["changed"] for row in rows},
    }


def _example(views: "Views", id_: str, step: int) -> str:
    """The first example after a step, with all attention."""
    arrays, about = unpacked(views.example(id_, ExampleQuestion(step=step)))
    return _text(packed({"attention": arrays["attention"]}, about))


def _text(data: bytes) -> str:
    """The file as text: compressed, the same bytes for the same file, in base64."""
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode()
