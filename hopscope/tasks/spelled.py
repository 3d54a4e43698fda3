"""One example in words: what stands at every position, what is asked, and what the answers say."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from jaxtyping import Float, Int
from torch import Tensor

from hopscope.configs.config import shortened
from hopscope.errors import ConfigError
from hopscope.tasks import counter
from hopscope.tasks.batch import Roles


@dataclass(frozen=True)
class Asked:
    """One question of an example."""

    position: int
    """Where it is asked, and answered."""
    chain: int
    truth: tuple[int | None, ...]
    """For each hop, the number of the right candidate; None if the sequence does not tell."""


@dataclass(frozen=True)
class Said:
    """What the model says to one hop of a question."""

    answer: int
    """The number of the candidate that it names."""
    loss: float | None
    """How far the output is from the truth; None if there is none."""
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

    def _token(self, logits: Float[Tensor, "class"], truth: int | None) -> Said:
        chances = logits.softmax(-1)
        answer = int(chances.argmax())
        loss = None if truth is None else float(-logits.log_softmax(-1)[truth])
        return Said(answer, loss, probability=float(chances[answer]))

    def _vector(self, vector: Float[Tensor, "dim"], truth: int | None) -> Said:
        assert self.vectors is not None
        errors = (self.vectors.double() - vector).square().mean(-1)
        answer = int(errors.argmin())
        loss = None if truth is None else float(errors[truth])
        return Said(answer, loss, distance=float(errors[answer]))


def letters(number: int) -> str:
    """a, b, …, z, ba, bb, …: what a chain, or a token, is called."""
    more, last = divmod(number, len(ascii_lowercase))
    return (letters(more) if more else "") + ascii_lowercase[last]


def row(roles: Roles, number: int = 0) -> Roles:
    """The roles of one example of several."""
    return Roles(roles.role[number], roles.chain[number])


def numbers(words: Sequence[str], names: Sequence[str], length: int) -> list[int]:
    """The symbols that somebody typed, by their numbers."""
    known = {name: number for number, name in enumerate(names)}
    for word in words:
        if word not in known:
            raise ConfigError(
                f"there is no symbol {word!r} here; the symbols are {shortened(', '.join(names))}"
            )
    if len(words) != length:
        raise ConfigError(f"the sequence has {len(words)} symbols; expected {length}")
    return [known[word] for word in words]


def shuffled(key: Int[Tensor, "rows"], count: int) -> Int[Tensor, "place"]:
    """An order of so many places, as a key says."""
    return counter.bits(key, count)[0].argsort()
