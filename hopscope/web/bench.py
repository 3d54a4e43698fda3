"""A language model's benchmark for the page: its answers and its heads."""

import json
from dataclasses import asdict
from typing import Any

from hopscope.configs import LmBench, Prompts
from hopscope.errors import ConfigError, RunDamaged
from hopscope.lm.prompts import question
from hopscope.lm.results import AnswerRecord, answers, best_heads, chance_of_correct, results
from hopscope.web.questions import ExampleQuestion
from hopscope.web.shown import ShownRun
from hopscope.web.tensors import packed

HEADS = "heads-"
"""Prefix of the files with heads of the model (`hopscope lm heads --keep`)."""


class Bench(ShownRun):
    """A benchmark of a language model."""

    @property
    def recipe(self) -> LmBench:
        return self.folder.recipe_as(LmBench)

    @property
    def answers(self) -> list[AnswerRecord]:
        """All answers so far (cached)."""
        key = "answers", self.folder.hashes("answers/")
        return self.memory.get(key, lambda: answers(self.folder), lambda found: 500 * len(found))

    def description(self) -> dict[str, Any]:
        bench = self.recipe
        return {
            "lm": {
                "model": bench.model,
                **bench.asking.model_dump(mode="json"),
                "questions": bench.questions,
                "kinds": [prompts.label for prompts in bench.prompts],
            },
            "results": [asdict(result) for result in results(self.folder)],
            "heads": self.heads(),
        }

    def heads(self) -> list[dict[str, Any]]:
        """Return the best head of each route, for each kept result of `hopscope lm heads`."""
        found = []
        for name in self.folder.files(HEADS):
            try:
                found.append(_shown(json.loads(self.folder.read(name))))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                raise RunDamaged(
                    f"{self.folder.name}/{name} holds no heads ({error!r}): `hopscope lm heads "
                    f"--keep {self.folder.name}` measures them again"
                ) from error
        return found

    def example(self, asked: ExampleQuestion) -> bytes:
        prompts = self._prompts(asked.kind)
        if asked.changes or asked.circuit or asked.tokens is not None:
            raise ConfigError(
                "the questions of a benchmark cannot be changed: ask for them by number"
            )
        if asked.index >= self.recipe.questions:
            raise ConfigError(
                f"index is {asked.index}; the questions are 0 … {self.recipe.questions - 1}"
            )
        put = question(prompts, self.recipe.seeds[0], asked.index)
        key = (prompts.label, asked.index)
        given = [each for each in self.answers if (each["kind"], each["index"]) == key]
        about = {
            "kind": prompts.label,
            "index": asked.index,
            "text": put.prompt,
            "opening": put.opening,
            "spans": [
                {"start": s.start, "end": s.end, "role": str(s.role), "chain": s.chain}
                for s in put.spans
            ],
            "correct": put.correct,
            "answer": given[0] if given else None,
            "right": chance_of_correct(given[0]) if given else None,
        }
        return packed({}, about)

    def _prompts(self, kind: str | None) -> Prompts:
        labels = {prompts.label: prompts for prompts in self.recipe.prompts}
        if kind is None:
            return self.recipe.prompts[0]
        if kind not in labels:
            raise ConfigError(f"there are no questions {kind!r} here; expected {', '.join(labels)}")
        return labels[kind]


def _shown(scores: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of kept scores that the page shows: the best head of each route."""
    counts = {name: scores[name] for name in ("model", "kind", "questions", "correct")}
    return {**counts, "routes": best_heads(scores)}
