"""A run of a benchmark: what a language model answered."""

from dataclasses import dataclass

from hopscope.configs import LlmBench
from hopscope.display import Displayed
from hopscope.llm.kept import Answer, answers
from hopscope.store import RunFolder


@dataclass(frozen=True)
class BenchRun(Displayed):
    """One benchmark on disk: its recipe and the answers so far."""

    folder: RunFolder

    def __repr__(self) -> str:
        return f"BenchRun({self.name!r})"

    @property
    def name(self) -> str:
        """The name of the run in its store."""
        return self.folder.name

    @property
    def recipe(self) -> LlmBench:
        """The recipe that the run is made from."""
        return self.folder.recipe_as(LlmBench)

    @property
    def answers(self) -> list[Answer]:
        """All answers that were kept, kind by kind."""
        return answers(self.folder)
