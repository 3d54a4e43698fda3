"""How a language model comes to its answer: what is patched, and on how many questions."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Config, Positive, Real, Whole
from hopscope.configs.prompts import Dtype, Prompts, model_word
from hopscope.configs.recipe import Recipe, Seeds

LEAST = 10
"""The least number of questions over which an interval is taken."""
Questions = Annotated[Whole, Field(ge=LEAST)]


class Tracing(Config):
    """How much is measured, and what counts."""

    mapped: Questions | None = None
    """Questions, the first of all, whose streams are patched at every role (default: all)."""
    searched: Questions = 24
    """Questions, the first of all, on which single heads are patched."""
    proved: Questions = 200
    """Fresh questions on which the circuit is exchanged, and runs alone."""
    proved_elsewhere: Questions | None = None
    """Questions of the other formulation (default: as many as are proved)."""
    given: bool = True
    """Also exchange what the question gives (x0)."""
    every: Positive = 1
    """Residual streams are patched before each such layer: 1 is all of them."""
    gains: Annotated[Real, Field(gt=0, lt=1)] = 0.02
    """A role gains in a layer if the answer follows it by so much more after it: there heads are
    patched, with the exchanges that it gains."""
    counts: Annotated[Real, Field(gt=0, lt=1)] = 0.1
    """The least share of the way to the donor's answer that a head's row moves it, to count."""
    most: Positive = 24
    """The largest number of rows whose sources are looked for, the strongest first."""


class LmCircuit(Recipe):
    """One model and one kind of question: which roles hold what, and which heads bring it."""

    kind: Literal["lm-circuit"] = "lm-circuit"

    model: str
    """A known model, a folder, or a GGUF file: its weights are needed."""
    prompts: Prompts
    """The kind of question."""
    elsewhere: Prompts | None = None
    """Another formulation, on which the same circuit is proved as well."""
    questions: Questions = 200
    """Pairs of questions that are answered, and patched."""
    tracing: Tracing = Tracing()
    template: Literal["chat", "raw"] = "chat"
    """The model's own chat template, or the bare prompt and "Answer:" on a line of its own."""
    dtype: Dtype = "float32"
    """Arithmetic of the model."""
    seeds: Seeds = (0,)
    """One seed; it fixes the questions, and the random draws."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if "://" in self.model:
            raise ValueError(
                f"{self.model} is an endpoint, which shows no weights: to patch a model, give its "
                "name, a folder, or a GGUF file"
            )
        if len(self.seeds) > 1:
            raise ValueError(f"seeds are {self.seeds}: a circuit is searched with one")
        for name in ("mapped", "searched"):
            if (count := getattr(self.tracing, name) or 0) > self.questions:
                option = {"mapped": "--map-questions", "searched": "--search-questions"}[name]
                raise ValueError(
                    f"{name} is {count}, and there are {self.questions} questions: give {option} "
                    f"{self.questions}, or more questions"
                )
        for prompts in filter(None, (self.prompts, self.elsewhere)):
            if prompts.chains < 3:
                raise ValueError(
                    f"questions of {prompts.label} cannot be paired: answers are measured against "
                    f"those of third chains, and there are {prompts.chains}; ask for 3 or more"
                )
        return self

    @model_validator(mode="after")
    def _same_roles(self) -> Self:
        if self.elsewhere is not None:
            own, other = (set(its.graph().roles) for its in (self.prompts, self.elsewhere))
            if apart := sorted(own ^ other):
                here, there = self.elsewhere.label, self.prompts.label
                if apart[0] in other:
                    here, there = there, here
                raise ValueError(
                    f"{here} has no role {str(apart[0])!r}, which {there} has: a circuit is proved "
                    "on a formulation with the same roles"
                )
        return self

    @property
    def phases(self) -> tuple[tuple[str, int], ...]:
        """What is done one after the other, and with how many questions."""
        its = self.tracing
        return (
            ("answers", self.questions),
            ("roles", its.mapped or self.questions),
            ("heads", its.searched),
            ("paths", its.searched),
            ("proof", its.proved),
            ("elsewhere", (its.proved_elsewhere or its.proved) if self.elsewhere else 0),
        )

    def prompts_of(self, phase: str) -> Prompts:
        """The kind of questions of a phase."""
        other = self.elsewhere if phase == "elsewhere" else None
        return other or self.prompts

    @property
    def task_kind(self) -> str:
        return "lm"

    @property
    def steps(self) -> int:
        """The number of questions of all phases together."""
        return sum(count for _, count in self.phases)

    @property
    def unit(self) -> str:
        return "question"

    def title(self) -> str:
        return f"lm-circuit-{model_word(self.model)}-{self.prompts.label}".lower()
