"""`Study`: a model with its task, and the analyses of it: attention, circuit, probes, patching,
emergence.

study = hopscope.load("gallery/demo")     # a model of a run
study = hopscope.Study(model, task)       # any model, any task
study.circuit                             # searched for on first use
study.attention().own                     # mean attention [layer, head, destination, source]
study.ablate("1.3")                       # losses without a head
study.probe().decodable(role, 2)          # the symbols decodable at a role after two layers
study.emergence().order                   # the paths, in the order in which they emerged
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from torch import nn

from hopscope.circuits import (
    Circuit,
    RoleMaps,
    ablator,
    adapter_of,
    attention_maps,
    discover,
    patching,
    probing,
    tracking,
)
from hopscope.circuits.ablator import Ablations, ablate, asked_for, every_head
from hopscope.circuits.adapters import AnyModel, replaceable
from hopscope.circuits.baselines import DEFAULT_SWITCHES, baselines
from hopscope.circuits.circuit_patching import patch_circuit
from hopscope.circuits.diagnostics import Diagnostics, diagnose
from hopscope.circuits.emergence import Emergence
from hopscope.circuits.examples import Questions
from hopscope.circuits.probe import Probe
from hopscope.circuits.ranking import Baselines, Switches
from hopscope.circuits.tracking import History, emergence
from hopscope.display import Displayed
from hopscope.errors import CircuitError
from hopscope.study.circuits import Circuits

PAGE = "hopscope.web.opening"
"""The module that shows a study in the browser: in a higher layer, so it is imported by name when
needed."""
MAP_EXAMPLES = 256
"""Examples over which role maps are averaged."""


@dataclass(frozen=True)
class Series:
    """A series of checkpoints that is not a run: models by step, or functions that load them."""

    models: Mapping[int, AnyModel | Callable[[], AnyModel]]

    @property
    def checkpoints(self) -> list[int]:
        """The steps, in order."""
        return sorted(self.models)

    def model_at(self, step: int) -> AnyModel:
        """The model at a step."""
        model = self.models[step]
        return model() if callable(model) and not isinstance(model, nn.Module) else model


class Study(Displayed):
    """A model with its task: what its heads attend to, its circuit, and how the circuit emerged."""

    task: Questions
    """The task on which the model is studied."""
    name: str
    """The model's name in messages."""
    history: History | None
    """The model's checkpoints, if there are several."""
    member: int | None
    """The index of the model in its fleet, if the checkpoints are those of a fleet."""
    _circuit: Circuit | None = None

    def __init__(
        self,
        model: AnyModel,
        task: Questions,
        *,
        name: str = "model",
        history: History | None = None,
        circuit: Circuit | None = None,
    ) -> None:
        """`task` is a task of hopscope, an `OwnTask`, or a function that returns `Examples`;
        `circuit` is the model's circuit, if it was found before.
        """
        self._model, self.task, self.name = model, task, name
        self.history, self.member = history, None
        self._circuit = circuit

    @classmethod
    def series(
        cls,
        models: Mapping[int, AnyModel | Callable[[], AnyModel]],
        task: Questions,
        *,
        name: str = "series",
    ) -> "Study":
        """The study of the last of several checkpoints, {step: model}, with all of them as its
        history. Each model can also be given as a function that loads it; then only the last model
        and one other are in memory at a time.
        """
        if not isinstance(models, Mapping) or not models:
            what = "no checkpoint" if not models else f"a {type(models).__name__}"
            raise CircuitError(f"a series got {what}; expected {{step: model, …}}")
        for step, model in models.items():
            if isinstance(step, bool) or not isinstance(step, int | np.integer) or step < 0:
                raise CircuitError(
                    f"a checkpoint of the series is at step {step!r}; expected a whole number"
                )
            if not isinstance(model, AnyModel) and not callable(model):
                raise CircuitError(
                    f"the checkpoint at step {step} is a {type(model).__name__}; expected a model, "
                    "or a function that loads it"
                )
        history = Series(models)
        return Study(history.model_at(max(models)), task, name=name, history=history)

    def __repr__(self) -> str:
        return f"Study({self.name!r})"

    @property
    def model(self) -> AnyModel:
        """The model that is studied."""
        return self._model

    def attention(self, examples: int = MAP_EXAMPLES, seed: int = 0) -> RoleMaps:
        """Mean attention between roles, over fresh examples."""
        return attention_maps(self.model, self.task, examples, seed)

    @property
    def circuit(self) -> Circuit:
        """The circuit of the model; searched for on first use."""
        return self._circuit or self.discover()

    def discover(self, **options: Any) -> Circuit:
        """Find the circuit of the model, and keep it; options are those of `hopscope.discover`."""
        self._circuit = discover(self.model, self.task, **options)
        return self._circuit

    def patch(self, examples: int = patching.EXAMPLES, seed: int = 0) -> Circuit:
        """The circuit with its account: which symbols are decodable at its roles, and which symbol
        each path moves.
        """
        self._check_patchable()
        self._circuit = patch_circuit(self.model, self.circuit, self.task, examples, seed)
        return self._circuit

    def _check_patchable(self) -> None:
        """Raise CircuitError, before the circuit is searched, if the task draws no pairs or head
        outputs cannot be replaced.
        """
        patching.paired(self.task)
        replaceable(self.model)

    def diagnose(self, **options: Any) -> Diagnostics:
        """Diagnostics of the circuit: backup heads and restored heads."""
        return diagnose(self.model, self.circuit, self.task, **options)

    def ablate(self, *changes: str, examples: int = ablator.EXAMPLES, seed: int = 0) -> Ablations:
        """The losses with some heads changed together. Changes are written as for `hopscope
        ablate`: "1.3" or "1.3=mean". Without changes, every head is ablated in turn.
        """
        adapter = adapter_of(self.model)
        asked = asked_for(changes) if changes else every_head(adapter)
        return ablate(adapter, self.task, asked, examples=examples, seed=seed)

    def probe(self, examples: int = probing.EXAMPLES, seed: int = 0) -> Probe:
        """Which symbols are decodable at each role after every layer, and in each head's output."""
        return probing.probe(self.model, self.task, examples, seed)

    def baselines(
        self,
        examples: int = patching.EXAMPLES,
        seed: int = 0,
        switches: Switches = DEFAULT_SWITCHES,
    ) -> Baselines:
        """Scores of other methods (EAP-IG, activation patching, …), compared with the circuit."""
        self._check_patchable()
        return baselines(self.model, self.circuit, examples, seed, switches)

    def emergence(self, examples: int = tracking.EXAMPLES, seed: int = 0) -> Emergence:
        """When each path of the circuit emerged, measured at every checkpoint."""
        if self.history is None:
            raise CircuitError(
                f"{self.name} has one checkpoint; hopscope.Study.series({{step: model, …}}, task) "
                "takes several"
            )
        return emergence(self.history, self.circuit, self.task, self.member, examples, seed)

    def view(
        self,
        circuit: Circuit | None = None,
        *,
        words: Callable[[int], str] = str,
        **options: Any,
    ) -> None:
        """Show the study in the browser until Ctrl-C: attention, the circuit (`circuit`, or the one
        that was found), and the losses with heads switched off by a click.

        `words` converts a token to text, such as `lambda token: tokenizer.decode([token])`.
        Options: `save="page.html"` (or a folder) writes the page and starts no server;
        `browser=False` only prints the URL; `port=N` sets the port.
        """
        import_module(PAGE).view(self, circuit or self._circuit, words, **options)

    def compare(self, other: "Study") -> Circuits:
        """The comparison of this study's circuit with the circuit of another study."""
        return Circuits.of(self.circuit, other.circuit)
