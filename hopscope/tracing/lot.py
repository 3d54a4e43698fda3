"""Examples with what their symbols are: what a read-out is fitted to, and marked by."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.circuits.exam import Exam, Questions, exam_of
from hopscope.configs import FactTask
from hopscope.errors import CircuitError
from hopscope.tasks import symbols as drawn_symbols


@dataclass(frozen=True)
class Lot:
    """Examples, and the symbols of their chains."""

    exam: Exam
    symbols: Tensor
    """The symbols of every chain [batch, chain, symbol, …]: vectors, or numbers of classes."""
    names: tuple[str, ...]
    tokens: bool
    classes: int
    """Numbers of a target: of a vector, or a class each."""

    @classmethod
    def of(cls, questions: Questions, examples: int, seed: int) -> "Lot":
        """Draw examples of these questions; refuse those that do not name their symbols."""
        exam = exam_of(questions, examples, seed)
        symbols, names = exam.symbols, exam.names
        if isinstance(questions, FactTask):
            names = questions.symbol_names()
            if names:
                symbols = drawn_symbols(questions, seed, examples, "validation")
        if symbols is None or not names:
            raise CircuitError(
                "these questions do not say what their symbols are: make the exam with symbols "
                "[batch, chain, symbol, …] and their names"
            )
        tokens = not symbols.is_floating_point()
        classes = int(symbols.max()) + 1 if tokens else symbols.shape[-1]
        return cls(exam, symbols, names, tokens, classes)

    @property
    def groups(self) -> int:
        """Symbols of the own chain, of another example, and if there is one, of another chain."""
        return len(self.names) * (3 if self.symbols.shape[1] > 1 else 2)

    @cached_property
    def spots(self) -> list[tuple[Int[Tensor, "spot"], Int[Tensor, "spot"]]]:
        """For each role, the examples and positions where it stands in a chain."""
        role, chain = self.exam.roles.role, self.exam.roles.chain
        inside = chain < self.symbols.shape[1]
        every = [((role == n) & inside).nonzero(as_tuple=True) for n in range(len(self.exam.table))]
        return [(example, place) for example, place in every]

    def targets(
        self, example: Int[Tensor, "spot"], place: Int[Tensor, "spot"]
    ) -> Float[Tensor, "spot group size"]:
        """For each position, the targets of the map for every symbol: of the own chain, of another
        example, and of another chain.
        """
        chain = self.exam.roles.chain[example, place].long()
        chains = self.symbols.shape[1]
        found = [self.symbols[example, chain], self.symbols[example - 1, chain]]
        if chains > 1:
            found.append(self.symbols[example, (chain + 1) % chains])
        every = torch.cat(found, 1)
        if not self.tokens:
            return every
        return torch.nn.functional.one_hot(every.long(), self.classes).float()
