"""The description of a training over facts as plain data, without computation or torch."""

import json
from typing import Any

from hopscope.circuits.circuit import Circuit
from hopscope.circuits.components import Component
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.saved import saved_circuit, saved_emergence
from hopscope.configs import Experiment, Task
from hopscope.plots.account import list_carried
from hopscope.store import RunFolder
from hopscope.store.checkpoints import checkpoint_steps
from hopscope.store.metrics import learned_steps
from hopscope.theory import Path, flow
from hopscope.web.questions import VIEWABLE

PLANTED_FILE = "planted.json"
"""The file with the paths of a planted model's circuit."""
DRAWN = 32
"""Largest number of facts whose schedule is computed for the page."""


def description(folder: RunFolder, recipe: Experiment, seed: int) -> dict[str, Any]:
    """Return the page's first data of one model of a training."""
    circuit = saved_circuit(folder, seed)
    emergence = saved_emergence(folder, circuit)
    steps, measured = checkpoint_steps(folder), folder.files("metrics/")
    return {
        "task": task_of(recipe.task),
        "model": recipe.model.model_dump(mode="json"),
        "seeds": list(recipe.seeds),
        "seed": seed,
        "member": folder.member(seed),
        "checkpoints": steps,
        "circuit": None if circuit is None else circuit_of(circuit),
        "planted": planted_paths(folder),
        "theory": theory_of(recipe.task, causal=recipe.model.causal),
        "emerged": None if emergence is None else emerged_of(emergence),
        "learned": learned_steps(folder)[folder.member(seed)] if measured else None,
    }


def planted_paths(folder: RunFolder) -> list[dict[str, Any]] | None:
    """Return the paths of a planted model's circuit; None for other models."""
    if PLANTED_FILE not in folder.manifest.files:
        return None
    found: list[dict[str, Any]] = json.loads(folder.read(PLANTED_FILE))
    return found


def task_of(task: Task) -> dict[str, Any]:
    """Return the task's data for the page."""
    graph, asked = task.graph(), task.asked_hops()
    return {
        "kind": task.kind,
        "length": task.interface().length,
        "roles": [str(role) for role in task.roles()],
        "hops": [f"hop {number}" for number in asked],
        "asked": list(asked),
        "chance": list(task.chances()),
        "chance_examined": list(task.chances(task.labelled_positions())),
        "labelled": task.labelled_positions(),
        "graph": None if graph is None else [str(fact) for fact in graph.facts],
        "symbols": list(task.symbol_names()),
        "drawn": VIEWABLE,
    }


def circuit_of(circuit: Circuit) -> dict[str, Any]:
    """Return the circuit's JSON for the page, with its verdict, the reasons for it, and each
    component in words.

    Roles become text, and each path has the symbols that move along it (from the account).
    """
    found = circuit.to_dict()
    for component, kept in zip(circuit.components, found["components"], strict=True):
        kept |= {"name": component.name, "told": circuit.described(component)}
        kept |= {"destinations": [str(role) for role in component.destinations]}
        kept |= {"paths": [path_of(circuit, component, path) for path in component.paths]}
    reasons = [*circuit.warnings, *circuit.lacks, *circuit.replace_each_other]
    return found | {
        "verdict": circuit.verdict, "reasons": reasons, "account": circuit.account is not None,
    }  # fmt: skip


def path_of(circuit: Circuit, component: Component, path: Path) -> dict[str, Any]:
    """Return one path in names, with the symbols that it moves to the answer (`carried`), and those
    that route later heads (`routed`).
    """
    patched = circuit.account.of(component, path) if circuit.account else None
    carried, routed = list_carried(circuit, patched), list(patched.routed) if patched else []
    return {**in_names(path), "carried": carried, "routed": routed}


def in_names(path: Path) -> dict[str, Any]:
    """Return the names and numbers of a path."""
    return {
        "layer": path.layer,
        "head": path.head,
        "destination": str(path.destination),
        "source": str(path.source),
        "name": name_of(path),
    }


def name_of(path: Path) -> str:
    """Return a path's name in keys and addresses: `1.0:value 0>query`."""
    return f"{path.layer}.{path.head}:{path.source}>{path.destination}"


def emerged_of(story: Emergence) -> dict[str, float | None]:
    """The step at which each path emerged, by the path's name."""
    return {name_of(path): story.emerged(path) for path in story.paths}


def theory_of(task: Task, *, causal: bool) -> dict[str, Any] | None:
    """Return the earliest schedule by the theory of depth: which layer reads which role.

    None if there is no graph or order of facts, or too many facts.
    """
    graph, order = task.graph(), task.fact_order()
    if graph is None or order is None or len(graph.facts) > DRAWN:
        return None
    found = flow(graph, order, causal=causal)
    readings = found.schedule(graph.facts[-1].value)
    return {
        "layers": found.minimum[graph.facts[-1].value],
        "readings": [
            {"layer": r.layer - 1, "destination": str(r.destination), "source": str(r.source)}
            for r in readings
        ],
    }
