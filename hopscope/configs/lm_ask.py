"""`LmBench`: the recipe of a benchmark of a language model on questions in words."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hopscope.configs.config import Config, Positive, Real
from hopscope.configs.prompts import Dtype, ModelName, Prompts, model_word
from hopscope.configs.recipe import Recipe, Seeds


class Asking(Config):
    """How a language model is asked."""

    protocol: Literal["exact", "paper", "greedy"] = "exact"
    """exact: the probability of each acceptable answer, renormalised. paper: sample until an
    acceptable answer comes (appendix A). greedy: the likeliest token, once."""
    template: Literal["chat", "raw"] = "chat"
    """chat: the model's own chat template. raw: the bare prompt, then "Answer:" on a separate
    line."""
    temperature: Annotated[Real, Field(gt=0)] = 1.0
    """The sampling temperature (for the paper protocol; the paper names none)."""
    tries: Positive = 50
    """Most samples per question before it counts as not answered (the paper names no limit)."""
    max_tokens: Positive = 16
    """The largest number of tokens in an answer."""


class LmBench(Recipe):
    """The recipe of a benchmark: one model is asked questions in one or several formulations."""

    kind: Literal["lm"] = "lm"

    model: ModelName
    """A known model, a folder, a GGUF file, or the URL of an endpoint followed by #NAME."""
    prompts: Annotated[tuple[Prompts, ...], Field(min_length=1)]
    """The kinds of questions."""
    questions: Positive = 500
    """Number of questions of each kind (§4: 500)."""
    dtype: Dtype = "float32"
    """Precision of a model in this process; it does not apply to an endpoint."""
    asking: Asking = Asking()
    seeds: Seeds = (0,)
    """One seed; it determines the questions and the sampled answers."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        labels = [prompts.label for prompts in self.prompts]
        if len(set(labels)) < len(labels):
            raise ValueError(f"prompts are {', '.join(labels)}: each kind of question once")
        if len(self.seeds) > 1:
            raise ValueError(f"seeds are {self.seeds}: a benchmark has one")
        return self

    @model_validator(mode="after")
    def _sampled(self) -> Self:
        asking, usual = self.asking, Asking()
        for name in ("temperature", "tries"):
            if asking.protocol != "paper" and getattr(asking, name) != getattr(usual, name):
                raise ValueError(
                    f"{name} is {getattr(asking, name)}, and the {asking.protocol} protocol does "
                    "not sample: leave it out, or use --protocol paper"
                )
        return self

    @model_validator(mode="after")
    def _what_endpoints_can(self) -> Self:
        if not self.endpoint:
            return self
        if self.asking.protocol == "exact":
            raise ValueError("an endpoint gives no probabilities: use --protocol paper or greedy")
        if not self.model.partition("#")[2]:
            raise ValueError(f"write the model's name after the URL, as {self.model}#NAME")
        if self.asking.template == "chat" and any(each.opening for each in self.prompts):
            raise ValueError(
                "a chat endpoint begins its answers itself: leave out the opening, or ask with the "
                "raw template"
            )
        return self

    @property
    def endpoint(self) -> bool:
        """True if the model is given by a URL."""
        return "://" in self.model

    @property
    def task_kind(self) -> str:
        return "lm"

    @property
    def steps(self) -> int:
        """The total number of questions."""
        return self.questions * len(self.prompts)

    @property
    def unit(self) -> str:
        return "question"

    def title(self) -> str:
        return f"lm-{model_word(self.model)}-{self.asking.protocol}".lower()
