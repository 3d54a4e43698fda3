"""Variants of transformers A, B and C: choices of what the paper leaves open.

The paper does not give initial weights and the learning rate schedule; base and code can be read in
two ways. Shuffled facts are not a variant of the paper: they show whether heads that attend by
position depend on the order.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from hopscope.configs import Config, Experiment, Model, Retrieval, Training
from hopscope.errors import ConfigError
from hopscope.names import hint

WARMUP = 200
"""Steps of warm-up, if a variant has it."""
SHORT = 3_000
"""Steps for the map of variants; the paper's 24,000 take eight times as long."""
MIDDLE = 4_500
"""Steps of the most promising variant in the reduced protocol."""
LONG = 24_000
"""The paper's number of steps."""
SEEDS = (0, 1, 2)
"""The seeds of transformers A, B and C."""

CHOICES: Mapping[str, str] = {
    "init": "initial weights",
    "rate": "courses of the learning rate",
    "position": "codes",
    "base": "bases of the code",
    "order": "orders of the facts",
}
"""The name of each choice in words (plural)."""
ORDERS = {"backward": "in-order", "shuffled": "shuffled"}
"""The variant's word for a task's order of facts."""


class Variant(Config):
    """A variant: one word for each open choice; the defaults are how we read the paper."""

    init: Literal["gpt2", "fan-in", "torch"] = "gpt2"
    rate: Literal["constant", "warm-up", "cosine", "warm-up-cosine"] = "constant"
    position: Literal["token", "pair"] = "token"
    base: Literal["base-10000", "base-10"] = "base-10000"
    order: Literal["in-order", "shuffled"] = "in-order"

    @classmethod
    def of(cls, experiment: Experiment) -> "Variant":
        """Return the variant of an experiment."""
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
        """All words joined by spaces; the word "in-order" is left out."""
        return " ".join(word for _, word in self if word != "in-order")

    def experiment(self, seed: int, steps: int = SHORT) -> Experiment:
        """Return the experiment of transformer A, B or C under this variant."""
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
    """Return the choices that words name; raises ConfigError for unknown or conflicting words."""
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
    """Parse a variant such as `fan-in cosine pair base-10`; omitted choices have their defaults."""
    return Variant.model_validate(chosen(words.split()))


def variants_of(*names: str) -> tuple[Variant, ...]:
    """Return the variants of these names."""
    return tuple(map(variant_of, names))


VARIANTS = variants_of(
    # The best choices for small models, all together and with the paper's code.
    "fan-in warm-up-cosine pair base-10",
    "fan-in warm-up-cosine",
    # Not variants of the paper: do heads that attend by position need the order of the facts?
    "fan-in warm-up-cosine pair base-10 shuffled",
    "fan-in warm-up-cosine shuffled",
    # One choice at a time, from our reading of the paper.
    "fan-in",
    "cosine",
    "pair",
    "gpt2",
    "torch",
    "warm-up",
    "base-10",
    # Combinations of choices that help.
    "fan-in cosine pair base-10",
    "fan-in warm-up-cosine pair",
    "fan-in warm-up-cosine base-10",
    "fan-in pair base-10",
    "gpt2 warm-up-cosine pair base-10",
    "torch warm-up-cosine pair base-10",
    # Does the learning rate schedule help alone, or with the base of the code?
    "warm-up-cosine",
    "warm-up-cosine base-10",
)
"""The variants to train, the most important first."""
BEST = variants_of(
    "fan-in warm-up-cosine pair base-10", "fan-in warm-up-cosine base-10", "fan-in warm-up-cosine"
)
"""The best three variants of the map, over three seeds; trained for the paper's number of steps."""
