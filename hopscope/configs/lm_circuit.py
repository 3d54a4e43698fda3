"""`LmCircuit`: the recipe for finding a circuit in a language model."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Config, Positive, Real, Whole
from hopscope.configs.prompts import Dtype, ModelName, Prompts, model_word
from hopscope.configs.recipe import Recipe, Seeds

LEAST = 10
"""The least number of questions for an interval."""
QuestionCount = Annotated[Whole, Field(ge=LEAST)]


class Tracing(Config):
    """How many questions are used in each phase, and thresholds for effects."""

    mapped: QuestionCount | None = None
    """Number of questions (the first of all) for which the stream is patched at every role
    (default: all)."""
    searched: QuestionCount = 24
    """Number of questions (the first of all) on which single heads are patched."""
    proved: QuestionCount = 200
    """Number of fresh questions on which the circuit is patched, and run alone."""
    proved_elsewhere: QuestionCount | None = None
    """Number of questions of the other formulation (default: as `proved`)."""
    given: bool = True
    """Whether the symbol that the question gives (x0) is also exchanged."""
    every: Positive = 1
    """Residual streams are patched before each layer whose number is a multiple of this, and after
    the last layer."""
    gains: Annotated[Real, Field(gt=0, lt=1)] = 0.02
    """Heads are patched in layers where a role gains: patched after the layer, it moves the answer
    by at least this much more than before it. They are patched with the symbols that gain."""
    counts: Annotated[Real, Field(gt=0, lt=1)] = 0.1
    """An attention row counts if it moves the answer by at least this share of the way to that of
    the counterfactual."""
    most: Positive = 24
    """The largest number of rows whose sources are searched for, the strongest first."""


class LmCircuit(Recipe):
    """The recipe for finding the circuit of one model on one kind of question: which symbols its
    roles have, and which heads move them.
    """

    kind: Literal["lm-circuit"] = "lm-circuit"

    model: ModelName
    """A known model, a folder, or a GGUF file. An endpoint is not possible, since weights are
    needed."""
    prompts: Prompts
    """The kind of question."""
    elsewhere: Prompts | None = None
    """Another formulation, on which the same circuit is also tested."""
    questions: QuestionCount = 200
    """Number of pairs of questions that are answered and patched."""
    tracing: Tracing = Tracing()
    template: Literal["chat", "raw"] = "chat"
    """chat: the model's own chat template. raw: the bare prompt, then "Answer:" on a separate
    line."""
    dtype: Dtype = "float32"
    """Precision of the model."""
    seeds: Seeds = (0,)
    """One seed; it determines the questions and the random draws."""

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
        """The phases in order, each with its number of questions."""
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
        """The kind of questions in a phase."""
        other = self.elsewhere if phase == "elsewhere" else None
        return other or self.prompts

    @property
    def task_kind(self) -> str:
        return "lm"

    @property
    def steps(self) -> int:
        """The total number of questions in all phases."""
        return sum(count for _, count in self.phases)

    @property
    def unit(self) -> str:
        return "question"

    def title(self) -> str:
        return f"lm-circuit-{model_word(self.model)}-{self.prompts.label}".lower()
