"""One model with its task, as the page looks at it: of a run after a step, or of a `Study`."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import partial

from hopscope.circuits import Ablation, Ablator, Circuit, adapter_of, examples_of
from hopscope.circuits.adapters import AnyModel, CallbackModel
from hopscope.circuits.engine import Adapter
from hopscope.circuits.examples import Questions
from hopscope.circuits.probing import Reader
from hopscope.circuits.tables import Tables, other_tables
from hopscope.web.memory import Memory

ABLATOR_BYTES = 2**27
"""What an ablator keeps to be faster, at most (`hopscope.circuits.budget`)."""
READER_BYTES = 2**25
"""What reads squares takes, at most."""

Spread = dict[str, list[float]]
Key = tuple[int, int, bool, Ablation]
"""A number of examples, a sample, whether tables are the circuit's, and what heads do."""


@dataclass(frozen=True)
class Opened:
    """What is measured of a model, each thing once."""

    task: Questions
    hops: list[str]
    chances: list[float]
    circuit: Circuit | None
    weights: Hashable
    """What tells this model, and its circuit, from others."""
    open: Callable[[], AnyModel]
    check_fits: Callable[[int], None]
    """Refuses more examples than fit in memory."""
    probed: int
    """Examples on which the maps are fitted that read squares."""
    memory: Memory
    words: Callable[[int], str] = str
    """A token in words, where the task names none."""

    @property
    def adapter(self) -> Adapter | CallbackModel:
        """The model, ready to be examined."""
        return adapter_of(self.open())

    def ablator(self, examples: int, sample: int) -> Ablator:
        """What measures ablations of the model on these examples."""
        self.check_fits(examples)
        return self.memory.get(
            ("ablator", self.weights, examples, sample),
            lambda: Ablator(self.adapter, examples_of(self.task, examples, sample)),
            lambda made: ABLATOR_BYTES + made.examples.inputs.nbytes,
        )

    def tables(self, sample: int) -> Tables:
        """The tables that rows follow where no circuit has them."""
        return self.memory.get(
            ("tables", self.weights, sample),
            lambda: other_tables(self.adapter, self.task, sample),
            lambda made: sum(table.nbytes for table in made.values()),
        )

    def reader(self) -> Reader:
        """What reads symbols off the model's streams, as the squares do."""
        return self.memory.get(
            ("reader", self.weights),
            lambda: Reader(self.adapter, self.task, self.probed),
            lambda _: READER_BYTES,
        )

    def spreads(
        self, keys: list[Key], measure: Callable[[list[Key]], list[Spread]]
    ) -> list[Spread]:
        """Losses that are remembered, and those that are measured because they are not."""
        names = {key: ("spread", self.weights, *key) for key in keys}
        found = {key: self.memory.known(name) for key, name in names.items()}
        missing = [key for key, spread in found.items() if spread is None]
        for key, spread in zip(missing, measure(missing) if missing else (), strict=True):
            found[key] = self.memory.get(names[key], partial(dict, spread), lambda _: 1_000)
        return [found[key] for key in keys]
