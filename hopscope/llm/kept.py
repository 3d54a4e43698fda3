"""The answers that a benchmark has kept in its run; no torch here."""

import json
from typing import Any

from hopscope.configs import LlmBench
from hopscope.errors import RunMismatch
from hopscope.store import RunFolder

ANSWERS = "answers/all.jsonl"
PART = "answers/part-"

Answer = dict[str, Any]


def answers(folder: RunFolder) -> list[Answer]:
    """All answers that were committed, kind by kind."""
    bench = folder.experiment
    if not isinstance(bench, LlmBench):
        raise RunMismatch(
            f"{folder.name} is no benchmark of a language model: `hopscope llm bench` makes one"
        )
    lines = [
        json.loads(line)
        for name in folder.files("answers/")
        for line in folder.read(name).decode().splitlines()
    ]
    kinds = [prompts.label for prompts in bench.prompts]
    return sorted(lines, key=lambda each: (kinds.index(each["kind"]), each["index"]))
