"""One model with its task for the page: a checkpoint of a run, or the model of a `Study`."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from hopscope.circuits import Ablation, Ablator, Circuit, adapter_of, examples_of
from hopscope.circuits.adapters import AnyModel, CallbackModel
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Questions
from hopscope.circuits.probing import Reader
from hopscope.circuits.tables import Tables, other_tables
from hopscope.memory import Memory

ABLATOR_BYTES = 2**27
"""Largest size of an ablator's caches (`hopscope.circuits.budget`)."""
READER_BYTES = 2**25
"""Largest size of the probes of the page's squares."""

Spread = dict[str, list[float]]
Key = tuple[int, int, bool, Ablation]
"""Number of examples, sample, whether attention tables are the circuit's, and the ablation."""


@dataclass(frozen=True)
class Opened:
    """A model with caches, so that nothing is measured twice."""

    task: Questions
    hops: list[str]
    chances: list[float]
    circuit: Circuit | None
    weights: Hashable
    """Identifies the model's weights and its circuit."""
    open: Callable[[], AnyModel]
    probed: int
    """Number of examples on which the probes of the page's squares are fitted."""
    memory: Memory
    words: Callable[[int], str] = str
    """Converts a token to text, if the task has no names for tokens."""

    @property
    def adapter(self) -> Adapter | CallbackModel:
        """The engine's adapter of the model."""
        return adapter_of(self.open())

    def ablator(self, examples: int, sample: int) -> Ablator:
        """Return an ablator of the model on these examples (cached)."""
        return self.memory.get(
            ("ablator", self.weights, examples, sample),
            lambda: Ablator(self.adapter, examples_of(self.task, examples, sample)),
            lambda made: ABLATOR_BYTES + made.examples.inputs.nbytes,
        )

    def tables(self, sample: int) -> Tables:
        """Return the attention tables for changes, if no circuit has them (cached)."""
        return self.memory.get(
            ("tables", self.weights, sample),
            lambda: other_tables(self.adapter, self.task, sample),
            lambda made: sum(table.nbytes for table in made.values()),
        )

    def reader(self) -> Reader:
        """Return the probes that decode symbols from the model's streams (cached)."""
        return self.memory.get(
            ("reader", self.weights),
            lambda: Reader(self.adapter, self.task, self.probed),
            lambda _: READER_BYTES,
        )

    def spreads(
        self, keys: list[Key], measure: Callable[[list[Key]], list[Spread]]
    ) -> list[Spread]:
        """Return the losses of all keys; call `measure` for those that are not cached."""
        names = {key: ("spread", self.weights, *key) for key in keys}
        found = {key: self.memory.known(name) for key, name in names.items()}
        missing = [key for key, spread in found.items() if spread is None]
        for key, spread in zip(missing, measure(missing) if missing else (), strict=True):
            found[key] = self.memory.get(names[key], partial(dict, spread), lambda _: 1_000)
        return [found[key] for key in keys]
