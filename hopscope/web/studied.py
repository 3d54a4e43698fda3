"""What the page can ask of a `Study`: of any model with its task, in the one state that it has."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from hopscope.circuits import Ablation, CallbackModel, Circuit, adapter_of, examples_of
from hopscope.circuits.examples import Examples
from hopscope.circuits.probing import EXAMPLES, probe, probed_symbols
from hopscope.configs import FactTask
from hopscope.errors import CircuitError, ConfigError
from hopscope.study import Study
from hopscope.web.described import circuit_of, task_of, theory_of
from hopscope.web.examples import example
from hopscope.web.measuring import Stop, ablated, asked_to_stop, costs
from hopscope.web.memory import Memory
from hopscope.web.opened import Opened
from hopscope.web.questions import (
    STUDY,
    VIEWABLE,
    AblateQuestion,
    CostsQuestion,
    ExampleQuestion,
)
from hopscope.web.stories import contents_of, maps_of

STEP = 0
"""What the page calls the one state of the model."""
FEW = 64
"""Examples that the model has answered before anybody looks."""
COUNTS, PATIENCE = (FEW, 256, 1024), 15.0
"""Examples on which a click is measured, and seconds that this may take as far as it is known: on a
slow model few have to do.
"""
CLASSES = 1024
"""Symbols of more classes (as the tokens of most language models) have no squares."""


class Studied:
    """A study on the page. One line says why, if its model, its task and its circuit do not fit."""

    def __init__(
        self,
        study: Study,
        circuit: Circuit | None,
        memory: Memory,
        named: Sequence[str] = (),
        words: Callable[[int], str] = str,
    ) -> None:
        """`named` are the words that name the model with its task to commands; none: it was opened
        in Python. `words` gives a token in words, where the task names none.
        """
        self.study, self.circuit, self.memory, self.named = study, circuit, memory, list(named)
        adapter, few = adapter_of(study.model), examples_of(study.task, FEW)
        if circuit is not None:
            _check_circuit(circuit, few, adapter.digest())
        self.opened = Opened(
            task=study.task,
            hops=[],
            chances=[],
            circuit=circuit,
            weights=STUDY,
            open=lambda: adapter,
            check_fits=study.check_fits,
            probed=EXAMPLES,
            memory=memory,
            words=words,
        )
        begun = time.monotonic()
        losses = self.opened.ablator(FEW, 0).losses([Ablation()])
        each = 2 * (time.monotonic() - begun) / FEW  # as it is, and with heads changed
        self.counts = [n for n in COUNTS if n == COUNTS[0] or n * each < PATIENCE][-2:]
        self.task = _described(study, few, losses.shape[-1])
        if isinstance(adapter, CallbackModel) and adapter.streams is None:
            self.task["symbols"] = []  # nothing can be read off streams that are not handed out
        self.opened.hops.extend(self.task["hops"])
        self.opened.chances.extend(self.task["chance_examined"])

    @property
    def row(self) -> dict[str, Any]:
        """The study in the list of runs."""
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
        adapter, task = self.opened.adapter, self.study.task
        theory = theory_of(task, causal=adapter.causal) if isinstance(task, FactTask) else None
        return {
            "task": self.task,
            "model": {"layers": adapter.layers, "heads": adapter.heads},
            "seeds": [],
            "checkpoints": [STEP],
            "circuit": circuit_of(self.circuit) if self.circuit else None,
            "circuit_step": STEP if self.circuit else None,
            "theory": theory,
            "arrays": self._arrays,
            "at_hand": [name for name in self._arrays if self.at_hand(name) is not None],
            "named": self.named,
            "counts": self.counts,
        }

    @property
    def _arrays(self) -> list[str]:
        return ["maps", *["contents"] * bool(self.task["symbols"])]

    def at_hand(self, name: str) -> bytes | None:
        """Arrays that are remembered; None if they have to be computed."""
        if name not in self._arrays:
            has = ", ".join(self._arrays)
            raise ConfigError(f"a study has no arrays {name[:40]!r}; it has {has}")
        found: bytes | None = self.memory.known((STUDY, name))
        return found

    def arrays(self, name: str, stop: Stop) -> bytes:
        self.at_hand(name)  # says if there are none
        asked_to_stop(stop)()
        return self.memory.get((STUDY, name), partial(self._measured, name), len)

    def _measured(self, name: str) -> bytes:
        if name == "maps":
            return maps_of([self.study.attention()], "steps", [STEP])
        found = probe(self.opened.adapter, self.study.task, EXAMPLES, heads=False)
        return contents_of([found], [STEP])

    def arrays_at(self, name: str, step: int, stop: Stop) -> bytes:
        """The same: there is one state."""
        self._check(step)
        return self.arrays(name, stop)

    def example(self, asked: ExampleQuestion) -> bytes:
        self._check(asked.step)
        return example(self.opened, asked)

    def ablate(self, asked: AblateQuestion, stop: Stop) -> dict[str, Any]:
        self._check(asked.step)
        return ablated(self.opened, asked, stop)

    def costs(self, asked: CostsQuestion, stop: Stop) -> Iterator[dict[str, Any]]:
        self._check(asked.step)
        return costs(self.opened, asked, stop)

    def _check(self, step: int | None) -> None:
        if step not in (None, STEP):
            raise ConfigError(f"step is {step}; a study has one state of its model, {STEP}")


def _check_circuit(circuit: Circuit, examples: Examples, digest: str) -> None:
    """Refuse the circuit of another model, or of another task."""
    circuit.check_model(digest)
    if circuit.roles != examples.table:
        found, wanted = (", ".join(map(str, its)) for its in (circuit.roles, examples.table))
        raise CircuitError(
            f"the circuit is of the roles {found}; the task has {wanted}: give the task that it "
            "was found on"
        )


def _described(study: Study, examples: Examples, hops: int) -> dict[str, Any]:
    """The task as the page shows it; `given` where a function draws the examples."""
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
