"""One example in words: the symbol at every position, the questions, and a model's predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from torch import Tensor

from hopscope.configs.config import shortened
from hopscope.errors import ConfigError
from hopscope.shapes import Float, Int
from hopscope.tasks import counter
from hopscope.tasks.batch import Roles


@dataclass(frozen=True)
class QueryPosition:
    """One question of an example."""

    position: int
    """The position at which it is asked and answered."""
    chain: int
    truth: tuple[int | None, ...]
    """For each hop, the number of the right candidate; None if the sequence does not determine it.
    """


@dataclass(frozen=True)
class Prediction:
    """A model's answer to one hop of a question."""

    answer: int
    """The number of the predicted candidate."""
    loss: float | None
    """The loss against the truth; None without a truth."""
    probability: float | None = None
    """The probability of the predicted candidate; None if answers are vectors."""
    distance: float | None = None
    """The mean squared error to the predicted candidate; None if answers are tokens."""


@dataclass(frozen=True)
class RenderedExample:
    """One example in words."""

    inputs: Tensor
    """[seq, width], or [seq] for tokens."""
    roles: Roles
    texts: tuple[str, ...]
    """The symbol at every position."""
    questions: tuple[QueryPosition, ...]
    candidates: tuple[str, ...]
    """All possible answers."""
    vectors: Float[Tensor, "candidate dim"] | None = None
    """The candidates' vectors; None if answers are tokens."""

    def predictions(
        self, question: QueryPosition, output: Float[Tensor, "width"]
    ) -> list[Prediction]:
        """The predictions, hop by hop, from the output at a question's position."""
        hops = output.double().unflatten(-1, (len(question.truth), -1))
        predict = self._token if self.vectors is None else self._vector
        return [predict(hop, truth) for hop, truth in zip(hops, question.truth, strict=True)]

    def _token(self, logits: Float[Tensor, "class"], truth: int | None) -> Prediction:
        chances = logits.softmax(-1)
        answer = int(chances.argmax())
        loss = None if truth is None else float(-logits.log_softmax(-1)[truth])
        return Prediction(answer, loss, probability=float(chances[answer]))

    def _vector(self, vector: Float[Tensor, "dim"], truth: int | None) -> Prediction:
        assert self.vectors is not None
        errors = (self.vectors.double() - vector).square().mean(-1)
        answer = int(errors.argmin())
        loss = None if truth is None else float(errors[truth])
        return Prediction(answer, loss, distance=float(errors[answer]))


def letters(number: int) -> str:
    """The name of a chain or token by its number: a, b, …, z, ba, bb, …"""
    more, last = divmod(number, len(ascii_lowercase))
    return (letters(more) if more else "") + ascii_lowercase[last]


def numbers_of(words: Sequence[str], names: Sequence[str], length: int) -> list[int]:
    """The numbers of symbols that a user typed; raises ConfigError for unknown symbols or a wrong
    count.
    """
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
    """A random order of `count` places, from a key."""
    return counter.bits(key, count)[0].argsort()
