"""A run of a benchmark: what a language model answered."""

from dataclasses import dataclass

from hopscope.configs import LlmBench
from hopscope.llm.kept import Answer, answers
from hopscope.store import RunFolder


@dataclass(frozen=True)
class BenchRun:
    """One benchmark, on disk."""

    folder: RunFolder

    @property
    def name(self) -> str:
        """What it is asked for by."""
        return self.folder.name

    @property
    def experiment(self) -> LlmBench:
        """What it is made from."""
        return self.folder.recipe_as(LlmBench)

    @property
    def answers(self) -> list[Answer]:
        """All answers that were kept, kind by kind."""
        return answers(self.folder)
