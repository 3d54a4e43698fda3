"""Questions in words: the five prompt formulations of Musat (ICLR 2025), §3.2 and appendix A."""

from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hopscope.configs.config import Config, Positive, Whole
from hopscope.facts import FactGraph, chain_of_facts, parse_facts

FORMULATIONS = {
    "f1": "equations",
    "f2": "lives-with",
    "f3": "kingdoms",
    "f4": "functions",
    "f5": "relatives",
}
"""The short names, in the order of the paper."""

LONGEST = 20
"""Most hops of a question; the paper measures equations up to there (figure 2)."""

USUAL_HOPS = 5
"""Hops of equations and lives-with where none are given (appendix A)."""

Dtype = Literal["float32", "bfloat16", "float16"]
"""Arithmetic of a language model."""

GRAPHS = {
    "kingdoms": chain_of_facts(5),
    "functions": parse_facts(["alias->function", "variable->number", "function,number->value"]),
    "relatives": parse_facts(
        [
            "person->profession",
            "profession->relation",
            "person,relation->relative",
            "relative->country",
        ]
    ),
}
"""One chain of each formulation whose graph is fixed."""

MOST_CHAINS = {"lives-with": 26, "kingdoms": 8, "relatives": 4}
"""How many chains the word lists of hopscope.lm.drawing suffice for; the others count on."""


class Prompts(Config):
    """Questions of one formulation, their chains interleaved. Two equations chains, two hops::

        b = 0 · a = 1 · c = b · d = a · What is the value of c?        answer: 0
        └─ last hop ─┘ └ first hop ─┘

    The question asks for one chain; the others are distractors.
    """

    formulation: Literal["equations", "lives-with", "kingdoms", "functions", "relatives"]
    """How the facts are worded (appendix A.1 … A.5); `f1` … `f5` are accepted for short."""
    hops: Positive | None = None
    """Number D of look-ups of equations and lives-with, 1 … 20 (figure 2); left out, it is 5
    (appendix A). The other formulations have one graph each and take none."""
    chains: Annotated[Whole, Field(ge=2)] = 4
    """Number N of chains interleaved in every question (appendix A: 4)."""

    opening: bool = False
    """Whether the answer's first words are given ("The value of b is"), since models that answer
    in sentences hardly ever say the bare answer."""

    @field_validator("formulation", mode="before")
    @classmethod
    def _in_full(cls, name: object) -> object:
        return FORMULATIONS.get(name, name) if isinstance(name, str) else name

    @field_validator("hops")
    @classmethod
    def _written_out(cls, hops: int | None, info: ValidationInfo) -> int | None:
        """Left out or not, five hops are the same questions: so they are the same config."""
        variable = info.data.get("formulation") in ("equations", "lives-with")
        return USUAL_HOPS if hops is None and variable else hops

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if self.formulation in GRAPHS and self.hops is not None:
            raise ValueError(
                f"hops is {self.hops}; {self.formulation} always has a depth of {self.depth}: "
                "leave hops out, or ask for equations or lives-with"
            )
        if self.hops is not None and self.hops > LONGEST:
            raise ValueError(f"hops is {self.hops}; a question has 1 to {LONGEST}: ask for fewer")
        most = MOST_CHAINS.get(self.formulation, self.chains)
        if self.chains > most:
            raise ValueError(
                f"chains is {self.chains}; {self.formulation} has words for {most}: ask for fewer, "
                "or for equations or functions, which count on"
            )
        return self

    def graph(self) -> FactGraph:
        """The facts of one chain; the question gives what no fact produces."""
        return GRAPHS.get(self.formulation) or chain_of_facts(self.hops or USUAL_HOPS)

    @property
    def depth(self) -> int:
        """Look-ups that follow from one another on the longest way to the answer."""
        return max(self.graph().hops)

    @property
    def label(self) -> str:
        """A name for tables and files; it says what is not as in the paper."""
        hops = f"-d{self.hops}" if self.hops else ""
        chains = f"-n{self.chains}" if self.chains != 4 else ""
        return f"{self.formulation}{hops}{chains}{'-opened' * self.opening}"


def model_word(model: str) -> str:
    """A model as a part of a file's name: the last part of its name, its folder or its address."""
    last = model.rstrip("/").split("#")[-1].split("/")[-1].removesuffix(".gguf")
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in last)
