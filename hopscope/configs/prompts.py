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
"""The most hops of a question, as in the paper's measurements of equations (figure 2)."""

USUAL_HOPS = 5
"""The default number of hops of equations and lives-with (appendix A)."""

Dtype = Literal["float32", "bfloat16", "float16"]
"""The precision of a language model."""

ModelName = Annotated[str, Field(pattern=r"^\P{C}*$")]
"""The name of a language model. It is drawn in figures, which control characters would break."""

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
"""The facts of one chain, for each formulation with a fixed graph."""

MOST_CHAINS = {"lives-with": 26, "kingdoms": 8, "relatives": 4}
"""The most chains for which hopscope.lm.drawing has words; the other formulations have no limit."""


class Prompts(Config):
    """Questions of one formulation, their chains interleaved. Two equations chains, two hops::

        b = 0 · a = 1 · c = b · d = a · What is the value of c?        answer: 0
        └─ last hop ─┘ └ first hop ─┘

    The question asks for one chain; the others are distractors.
    """

    formulation: Literal["equations", "lives-with", "kingdoms", "functions", "relatives"]
    """How the facts are worded (appendix A.1 … A.5); `f1` … `f5` are short names."""
    hops: Positive | None = None
    """Number D of look-ups of equations and lives-with, 1 … 20 (figure 2); default: 5 (appendix A).
    The other formulations have a fixed graph, so this must be left out."""
    chains: Annotated[Whole, Field(ge=2)] = 4
    """Number N of chains interleaved in every question (appendix A: 4)."""

    opening: bool = False
    """Whether the prompt contains the answer's first words ("The value of b is"). Models that
    answer in sentences rarely give the bare answer otherwise."""

    @field_validator("formulation", mode="before")
    @classmethod
    def _in_full(cls, name: object) -> object:
        return FORMULATIONS.get(name, name) if isinstance(name, str) else name

    @field_validator("hops")
    @classmethod
    def _written_out(cls, hops: int | None, info: ValidationInfo) -> int | None:
        """The number of hops with its default filled in, so that equal questions have equal
        configs.
        """
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
        """The facts of one chain; the question gives the symbols that no fact produces."""
        return GRAPHS.get(self.formulation) or chain_of_facts(self.hops or USUAL_HOPS)

    @property
    def depth(self) -> int:
        """The number of successive look-ups on the longest way to the answer."""
        return max(self.graph().hops)

    @property
    def label(self) -> str:
        """A name for tables and files; it includes the settings that differ from the paper's."""
        hops = f"-d{self.hops}" if self.hops else ""
        chains = f"-n{self.chains}" if self.chains != 4 else ""
        return f"{self.formulation}{hops}{chains}{'-opened' * self.opening}"


def model_word(model: str) -> str:
    """A model's name for file names: the last part of its name, folder or URL, with other
    characters than letters, digits, - and . replaced by -.
    """
    last = model.rstrip("/").split("#")[-1].split("/")[-1].removesuffix(".gguf")
    return "".join(sign if sign.isalnum() or sign in "-." else "-" for sign in last)
