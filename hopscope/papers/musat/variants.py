"""Variants of transformers A, B and C: what the paper leaves open of them, decided.

Initial weights and the course of the learning rate are not in the paper at all, base and code can
be read in two ways. That facts stand shuffled is no variant: it is what shows whether heads that
attend by position need the order.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from hopscope.configs import Config, Experiment, Model, Retrieval, Training
from hopscope.errors import ConfigError
from hopscope.names import hint

WARMUP = 200
"""Steps of warm-up, where a variant has one."""
SHORT = 3_000
"""Steps of the map of variants; the paper's 24,000 take eight times as long."""
MIDDLE = 4_500
"""Steps of the variant that promises most, where the paper's are too many."""
LONG = 24_000
"""The paper's steps."""
SEEDS = (0, 1, 2)
"""Those of transformers A, B and C."""

CHOICES: Mapping[str, str] = {
    "init": "initial weights",
    "rate": "courses of the learning rate",
    "position": "codes",
    "base": "bases of the code",
    "order": "orders of the facts",
}
"""What each choice is of, in words."""
ORDERS = {"backward": "in-order", "shuffled": "shuffled"}
"""The word for the order in which a task's facts stand."""


class Variant(Config):
    """One word for each thing that the paper leaves open; as it stands, what we take it to mean
    where nothing else is said.
    """

    init: Literal["gpt2", "fan-in", "torch"] = "gpt2"
    rate: Literal["constant", "warm-up", "cosine", "warm-up-cosine"] = "constant"
    position: Literal["token", "pair"] = "token"
    base: Literal["base-10000", "base-10"] = "base-10000"
    order: Literal["in-order", "shuffled"] = "in-order"

    @classmethod
    def of(cls, experiment: Experiment) -> "Variant":
        """The variant under which a model was trained."""
        its = experiment.named()
        course = {"constant": "", "cosine": "cosine"}[its["training.schedule"]]
        warmup = "warm-up" if its["training.warmup"] else ""
        return cls.model_validate(
            {
                "init": its["model.init"],
                "rate": "-".join(filter(None, (warmup, course))) or "constant",
                "position": its["task.position"],
                "base": f"base-{its['task.base']:g}",
                "order": ORDERS[its["task.order"]],
            }
        )

    @property
    def name(self) -> str:
        """All words in a row; that facts are in order goes without saying."""
        return " ".join(word for _, word in self if word != "in-order")

    def experiment(self, seed: int, steps: int = SHORT) -> Experiment:
        """The training of transformer A, B or C under this variant."""
        warmup = WARMUP if self.rate.startswith("warm-up") else 0
        if warmup >= steps:
            raise ConfigError(
                f"the variant {self.name!r} warms up over {warmup} steps, and the training has "
                f"{steps}: take more steps, or a variant without warm-up"
            )
        return Experiment(
            task=Retrieval(
                hops=3, position=self.position, base=float(self.base.removeprefix("base-")),
                order="shuffled" if self.order == "shuffled" else "backward",
            ),
            model=Model(layers=12, heads=1, d_model=128, init=self.init),
            training=Training(
                steps=steps, batch=128, warmup=warmup, checkpoint_every=steps // 20,
                schedule="cosine" if self.rate.endswith("cosine") else "constant",
            ),
            seeds=(seed,),
        )  # fmt: skip


def chosen(words: Sequence[str]) -> dict[str, str]:
    """The choices that words name, each at most once."""
    choice_of = {
        word: choice
        for choice, field in Variant.model_fields.items()
        for word in get_args(field.annotation)
    }
    found: dict[str, str] = {}
    for word in words:
        if word not in choice_of:
            known = f"the words are {', '.join(choice_of)}"
            raise ConfigError(f"no variant has {word!r}: {hint(word, choice_of, known)}")
        choice = choice_of[word]
        if found.get(choice, word) != word:
            raise ConfigError(
                f"{found[choice]} and {word} are both {CHOICES[choice]}: a variant has one of them"
            )
        found[choice] = word
    return found


def variant_of(words: str) -> Variant:
    """The variant of a name such as `fan-in cosine pair base-10`; what it leaves out is as we take
    the paper.
    """
    return Variant.model_validate(chosen(words.split()))


def variants_of(*names: str) -> tuple[Variant, ...]:
    """The variants of these names."""
    return tuple(map(variant_of, names))


VARIANTS = variants_of(
    # What was best for small models, as a whole and with the paper's code.
    "fan-in warm-up-cosine pair base-10",
    "fan-in warm-up-cosine",
    # No variants: do heads that attend by position need the order of the facts?
    "fan-in warm-up-cosine pair base-10 shuffled",
    "fan-in warm-up-cosine shuffled",
    # One choice at a time, from what we take the paper to mean.
    "fan-in",
    "cosine",
    "pair",
    "gpt2",
    "torch",
    "warm-up",
    "base-10",
    # Combinations of what helps.
    "fan-in cosine pair base-10",
    "fan-in warm-up-cosine pair",
    "fan-in warm-up-cosine base-10",
    "fan-in pair base-10",
    "gpt2 warm-up-cosine pair base-10",
    "torch warm-up-cosine pair base-10",
    # Is it the course of the learning rate alone, or with the base of the code?
    "warm-up-cosine",
    "warm-up-cosine base-10",
)
"""The variants that are tried, in the order of what matters."""
BEST = variants_of(
    "fan-in warm-up-cosine pair base-10", "fan-in warm-up-cosine base-10", "fan-in warm-up-cosine"
)
"""The best three of the map, over three seeds: they are trained as long as the paper trained."""
