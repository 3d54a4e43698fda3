"""Rows of results from language models: figure 2."""

from dataclasses import asdict
from math import isfinite

from hopscope.configs import LlmBench
from hopscope.llm.results import results
from hopscope.papers.results import Row
from hopscope.store import RunFolder


def llm_rows(folder: RunFolder) -> list[Row]:
    """A row per kind of question that a model was asked."""
    bench = folder.experiment
    assert isinstance(bench, LlmBench)
    about = {
        "run": folder.name,
        "model": bench.model,
        "protocol": bench.asking.protocol,
        "precision": bench.asking.precision,
        "seconds": folder.manifest.seconds,
    }
    return [
        {**about, **asdict(each), "interval": list(each.interval), "tries": _finite(each.tries)}
        for each in results(folder)
    ]


def _finite(number: float) -> float | None:
    """JSON knows no infinity, which samples per accepted answer may be."""
    return number if isfinite(number) else None
