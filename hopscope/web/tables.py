"""What the page's own engine must know of a task and a model, as plain data for JSON.

The engine draws the examples that the command line draws, so these are the tables by which the
samplers of `hopscope.tasks` work.
"""

from typing import Any

from hopscope.circuits.ablation import Carried, Change
from hopscope.circuits.circuit import Circuit
from hopscope.circuits.pattern import Target
from hopscope.configs import Experiment, Task
from hopscope.errors import ConfigError

PAINTED = (
    "own", "all", "others", "elsewhere",
    "previous", "itself", "uniform", "position", "place", "model",
)  # fmt: skip
"""Targets that the engine can draw."""


def engine_tables(recipe: Experiment) -> dict[str, Any]:
    """The task and the model of an experiment."""
    model = recipe.model
    return {
        "task": task_tables(recipe.task),
        "model": {
            "layers": model.layers,
            "heads": model.heads,
            "d_model": model.d_model,
            "d_head": model.head_width,
            "d_mlp": model.mlp_width if model.mlp else 0,
            "causal": model.causal,
            "norm": model.norm == "layer",
            "outputs": recipe.task.interface().outputs,
        },
    }


def task_tables(task: Task) -> dict[str, Any]:
    """How the examples of a task are drawn and marked."""
    from hopscope.tasks import sampler_of

    interface, sampler = task.interface(), sampler_of(task)
    shared = {
        "kind": task.kind,
        "roles": [str(role) for role in task.roles()],
        "names": list(sampler.candidates),
        "tokens": interface.tokens,
        "width": interface.numbers,
        "length": interface.length,
        "read": task.labelled_positions() or interface.read,
        "asked": len(task.asked_hops()),
        "facts": [role.fact for role in task.roles()],
        "guess": task.chance(),
    }
    return shared | sampler.tables()


def circuit_changes(circuit: Circuit) -> list[dict[str, Any]]:
    """What every head of a circuit does, for the engine; a ConfigError if it cannot draw that."""
    return [
        {"layer": layer, "head": head, "change": _change(change)}
        for (layer, head), change in circuit.ablation().changes
    ]


def _change(change: Change) -> dict[str, Any]:
    if isinstance(change, Carried):
        return {"carried": change.instead}
    targets = {str(role): _target(target) for role, target in change.targets}
    return {"targets": targets, "rest": _target(change.rest)}


def _target(target: Target) -> list[dict[str, Any]]:
    unknown = [source for source in target.every if source.where not in PAINTED]
    if unknown or target.when or target.otherwise:
        raise ConfigError(
            f"the circuit looks at {target}, which the saved page cannot draw: leave it out"
        )
    return [
        {"where": t.where, "role": None if t.role is None else str(t.role), "weight": weight}
        for t, weight in target.parts
    ]
