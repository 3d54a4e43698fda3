"""Examples with what their symbols are: what a read-out is fitted to, and marked by."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.circuits.exam import Exam, Questions, exam_of
from hopscope.circuits.mechanism import Target
from hopscope.configs import FactTask
from hopscope.errors import CircuitError
from hopscope.tasks import symbols as drawn_symbols


@dataclass(frozen=True)
class Lot:
    """Examples, and the symbols that their positions may hold."""

    exam: Exam
    symbols: Tensor
    """The symbols of every owner [batch, owner, symbol, …]: vectors, or numbers of classes."""
    names: tuple[str, ...]
    owner: Int[Tensor, "batch seq"]
    """Whose symbols each position is read for: those of its chain; or its own, the tokens that
    relations lead to from there."""
    tokens: bool
    classes: int
    """Numbers of a target: of a vector, or a class each."""
    others: bool
    """Are there other chains in an example?"""

    @classmethod
    def pair(cls, questions: Questions, fitted: int, marked: int, seed: int) -> "tuple[Lot, Lot]":
        """So many examples to fit maps on, and so many others to mark them on."""
        ours, its = cls.of(questions, fitted, seed + 1), cls.of(questions, marked, seed)
        names = tuple(name for name in ours.names if name in its.names)
        classes = max(ours.classes, its.classes)
        return ours.read_for(names, classes), its.read_for(names, classes)

    def read_for(self, names: tuple[str, ...], classes: int) -> "Lot":
        """The same examples, read for these symbols alone, and for so many classes of tokens."""
        numbers = [self.names.index(name) for name in names]
        return replace(self, symbols=self.symbols[:, :, numbers], names=names, classes=classes)

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
            return cls._along_relations(exam)
        tokens = not symbols.is_floating_point()
        classes = int(symbols.max()) + 1 if tokens else symbols.shape[-1]
        others = symbols.shape[1] > 1
        return cls(exam, symbols, names, exam.roles.chain, tokens, classes, others)

    @classmethod
    def _along_relations(cls, exam: Exam) -> "Lot":
        """The token at every position, and those that relations lead to from there; class 0 where
        a relation leads nowhere.
        """
        inputs, length = exam.inputs, exam.length
        tokens = inputs.dim() == 2 and not inputs.is_floating_point()
        follows = [each for each in exam.follows() if exam.relations[each[0]].dim() == 2]
        if not tokens or not follows:
            raise CircuitError(
                "these questions do not say what their symbols are: make the exam with symbols "
                "[batch, chain, symbol, …] and their names; or, if inputs are tokens, with "
                "relations that lead to positions"
            )
        padded = torch.cat((torch.zeros_like(inputs[:, :1]), inputs + 1), 1).long()
        symbols, names = [padded[:, 1:]], ["itself"]
        for name, times in follows:
            symbols.append(padded.gather(1, exam.landing(name, times) + 1))
            names.append(str(Target("relation", None, name, times)))
        owner = torch.arange(length).expand(inputs.shape)
        classes = int(padded.max()) + 1
        found = torch.stack(symbols, -1)
        return cls(exam, found, tuple(names), owner, tokens=True, classes=classes, others=False)

    @property
    def groups(self) -> int:
        """Symbols of the own chain, of another example, and if there is one, of another chain."""
        return len(self.names) * (3 if self.others else 2)

    @cached_property
    def spots(self) -> list[tuple[Int[Tensor, "spot"], Int[Tensor, "spot"]]]:
        """For each role, the examples and positions where it stands in a chain."""
        role, inside = self.exam.roles.role, self.owner < self.symbols.shape[1]
        every = [((role == n) & inside).nonzero(as_tuple=True) for n in range(len(self.exam.table))]
        return [(example, place) for example, place in every]

    def targets(
        self, example: Int[Tensor, "spot"], place: Int[Tensor, "spot"]
    ) -> Float[Tensor, "spot group size"] | Int[Tensor, "spot group"]:
        """For each position, the targets of the map for every symbol: its own, those of another
        example, and those of another chain. Of tokens these are the numbers of their classes.
        """
        owner = self.owner[example, place].long()
        found = [self.symbols[example, owner], self.symbols[example - 1, owner]]
        if self.others:
            found.append(self.symbols[example, (owner + 1) % self.symbols.shape[1]])
        every = torch.cat(found, 1)
        return every.long() if self.tokens else every
