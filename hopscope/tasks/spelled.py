"""One example in words: what stands at every position, what is asked, and what the answers say."""

from dataclasses import dataclass
from string import ascii_lowercase

import torch
from jaxtyping import Float, Int
from torch import Tensor

from hopscope.tasks.batch import Roles


@dataclass(frozen=True)
class Asked:
    """One question of an example."""

    position: int
    """Where it is asked, and answered."""
    chain: int
    truth: tuple[int, ...]
    """For each hop, the number of the right candidate."""


@dataclass(frozen=True)
class Said:
    """What the model says to one hop of a question."""

    answer: int
    """The number of the candidate that it names."""
    loss: float
    probability: float | None = None
    """The probability of that candidate; None where answers are vectors."""
    distance: float | None = None
    """The mean squared error to that candidate; None where answers are tokens."""


@dataclass(frozen=True)
class Spelled:
    """One example in words."""

    inputs: Tensor
    """[seq, width], or [seq] for tokens."""
    roles: Roles
    texts: tuple[str, ...]
    """The symbol at every position."""
    asked: tuple[Asked, ...]
    candidates: tuple[str, ...]
    """All that an answer may name."""
    vectors: Float[Tensor, "candidate dim"] | None = None
    """The candidates' vectors; None where answers are tokens."""

    def said(self, question: Asked, output: Float[Tensor, "width"]) -> list[Said]:
        """What the output at a question's position says, hop by hop."""
        hops = output.double().unflatten(-1, (len(question.truth), -1))
        mark = self._token if self.vectors is None else self._vector
        return [mark(hop, truth) for hop, truth in zip(hops, question.truth, strict=True)]

    def _token(self, logits: Float[Tensor, "class"], truth: int) -> Said:
        chances = logits.softmax(-1)
        answer = int(chances.argmax())
        loss = float(-logits.log_softmax(-1)[truth])
        return Said(answer, loss, probability=float(chances[answer]))

    def _vector(self, vector: Float[Tensor, "dim"], truth: int) -> Said:
        assert self.vectors is not None
        errors = (self.vectors.double() - vector).square().mean(-1)
        answer = int(errors.argmin())
        return Said(answer, float(errors[truth]), distance=float(errors[answer]))


def letters(number: int) -> str:
    """a, b, …, z, ba, bb, …: what a chain, or a token, is called."""
    more, last = divmod(number, len(ascii_lowercase))
    return (letters(more) if more else "") + ascii_lowercase[last]


def row(roles: Roles, number: int = 0) -> Roles:
    """The roles of one example of several."""
    return Roles(roles.role[number], roles.chain[number])


def rows(*columns: Int[Tensor, "seq"]) -> list[tuple[int, ...]]:
    """Columns of numbers side by side."""
    return [tuple(each) for each in torch.stack(columns, -1).tolist()]
