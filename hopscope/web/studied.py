"""A `Study` (any model with its task) for the page."""

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from hopscope.circuits import Ablation, Ablator, CallbackModel, Circuit, adapter_of, examples_of
from hopscope.circuits.examples import Examples
from hopscope.circuits.probing import EXAMPLES, probe, probed_symbols
from hopscope.configs import FactTask
from hopscope.errors import CircuitError, ConfigError
from hopscope.memory import Memory
from hopscope.study import Study
from hopscope.web.described import circuit_of, task_of, theory_of
from hopscope.web.opened import Opened
from hopscope.web.questions import STUDY, VIEWABLE, Ask
from hopscope.web.stories import contents_of, maps_of
from hopscope.web.trained import ShownModel

STEP = 0
"""The step of the model on the page: a study has only one checkpoint."""
FEW = 64
"""Number of examples that the model answers before the page opens, to measure its speed."""
COUNTS, PATIENCE = (FEW, 256, 1024), 15.0
"""Possible numbers of examples for a click, and its largest estimated time in seconds: a slow model
uses fewer examples.
"""
CLASSES = 1024
"""Symbols with more classes than this (such as tokens of language models) are not probed."""


class Studied(ShownModel):
    """A study on the page; raises if its model, task and circuit do not fit together."""

    kind = "a study"

    def __init__(
        self,
        study: Study,
        circuit: Circuit | None,
        memory: Memory,
        named: Sequence[str] = (),
        words: Callable[[int], str] = str,
    ) -> None:
        """`named` are the command-line words for the model and its task (empty: opened in Python).
        `words` converts a token to text, if the task has no names for tokens.
        """
        self.study, self.circuit, self.memory, self.named = study, circuit, memory, list(named)
        adapter, few = adapter_of(study.model), examples_of(study.task, FEW)
        if circuit is not None:
            _check_circuit(circuit, few, adapter.digest())
        begun = time.monotonic()
        losses = Ablator(adapter, few).losses([Ablation()])
        each = 2 * (time.monotonic() - begun) / FEW  # twice: without and with changes
        self.counts = [n for n in COUNTS if n == COUNTS[0] or n * each < PATIENCE][-2:]
        self.task = _described(study, few, losses.shape[-1])
        if isinstance(adapter, CallbackModel) and adapter.streams is None:
            self.task["symbols"] = []  # without access to streams nothing can be probed
        self._opened = Opened(
            task=study.task,
            hops=self.task["hops"],
            chances=self.task["chance_examined"],
            circuit=circuit,
            weights=STUDY,
            open=lambda: adapter,
            probed=EXAMPLES,
            memory=memory,
            words=words,
        )

    @property
    def row(self) -> dict[str, Any]:
        """The study's row in the list of runs."""
        return {
            "id": STUDY,
            "name": self.study.name,
            "kind": STUDY,
            "state": "complete",
            "problem": "",
            "tags": [],
            "date": None,
            "task": self.task["kind"],
            "hops": len(self.task["hops"]),
        }

    def description(self) -> dict[str, Any]:
        adapter, task = self._opened.adapter, self.study.task
        theory = theory_of(task, causal=adapter.causal) if isinstance(task, FactTask) else None
        return {
            "task": self.task,
            "model": {"layers": adapter.layers, "heads": adapter.heads},
            "seeds": [],
            "checkpoints": [STEP],
            "circuit": circuit_of(self.circuit) if self.circuit else None,
            "circuit_step": STEP if self.circuit else None,
            "theory": theory,
            "named": self.named,
            "counts": self.counts,
        }

    @property
    def array_names(self) -> list[str]:
        return ["maps", *["contents"] * bool(self.task["symbols"])]

    def key(self, name: str, step: int | None) -> Hashable:
        self.opened(step)  # raises if there is no such step
        return STUDY, name

    def measured(self, name: str, _step: int | None, _ask: Ask) -> bytes:
        if name == "maps":
            return maps_of([self.study.attention()], "steps", [STEP])
        found = probe(self._opened.adapter, self.study.task, EXAMPLES, heads=False)
        return contents_of([found], [STEP])

    def opened(self, step: int | None) -> Opened:
        if step not in (None, STEP):
            raise ConfigError(f"step is {step}; a study has one state of its model, {STEP}")
        return self._opened


def _check_circuit(circuit: Circuit, examples: Examples, digest: str) -> None:
    """Raise CircuitError if the circuit is of another model or task."""
    circuit.check_model(digest)
    if circuit.roles != examples.table:
        found, wanted = (", ".join(map(str, its)) for its in (circuit.roles, examples.table))
        raise CircuitError(
            f"the circuit is of the roles {found}; the task has {wanted}: give the task that it "
            "was found on"
        )


def _described(study: Study, examples: Examples, hops: int) -> dict[str, Any]:
    """Return the task's data for the page; `given` is True if a function draws the examples."""
    if isinstance(study.task, FactTask):
        return task_of(study.task)
    graph = examples.graph
    return {
        "kind": "own task",
        "length": examples.length,
        "roles": [str(role) for role in examples.table],
        "hops": [f"hop {number}" for number in range(1, hops + 1)],
        "asked": list(range(1, hops + 1)),
        "chance": [examples.chance] * hops,
        "chance_examined": [examples.chance] * hops,
        "graph": None if graph is None else [str(fact) for fact in graph.facts],
        "symbols": probed_symbols(study.task, classes=CLASSES),
        "drawn": VIEWABLE,
        "given": True,
    }
