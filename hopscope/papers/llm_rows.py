"""Rows of results from language models: figure 2."""

from collections.abc import Sequence
from dataclasses import asdict

from hopscope.configs import LlmBench
from hopscope.llm.results import results
from hopscope.papers.results import Row
from hopscope.store import RunFolder


def llm_rows(folders: Sequence[RunFolder]) -> list[Row]:
    """A row per model and kind of question."""
    return [row for folder in folders for row in _of(folder)]


def _of(folder: RunFolder) -> list[Row]:
    bench = folder.experiment
    assert isinstance(bench, LlmBench)
    about = {
        "run": folder.name,
        "model": bench.model,
        "protocol": bench.asking.protocol,
        "precision": bench.asking.precision,
        "seconds": folder.manifest.seconds,
    }
    return [{**about, **asdict(each)} for each in results(folder)]
