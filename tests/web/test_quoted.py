"""Lines that the server writes for the page hold a run's name as one literal, whatever it is."""

import ast
import shlex
from pathlib import Path

import pytest
from hostile import KEYS, TEXTS

from hopscope.configs import LmBench, LmCircuit, Prompts
from hopscope.store import RunFolder, Store, gallery
from hopscope.web.bench import Bench
from hopscope.web.mechanism import Traced
from hopscope.web.memory import Memory
from hopscope.web.ngram import Ngram
from hopscope.web.trained import Trained


def test_a_name_is_one_literal_in_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = Prompts(formulation="equations", hops=2)
    runs = [
        Trained(gallery.find("planted"), Memory(2**20)),
        Trained(gallery.find("demo"), Memory(2**20)),
        Ngram(gallery.find("ngram"), Memory(2**20)),
        Traced(Store(tmp_path).create(LmCircuit(model="x", prompts=prompts)), Memory(2**20)),
        Bench(Store(tmp_path).create(LmBench(model="x", prompts=(prompts,))), Memory(2**20)),
    ]
    for text in (*TEXTS, *KEYS):
        monkeypatch.setattr(RunFolder, "name", text)
        for run in runs:
            found = run.description()
            for line in found["command"].values():
                assert text in shlex.split(line), line
            for lines in found["python"].values():
                assert text in literals(lines), lines


def literals(python: str) -> list[object]:
    """The literals in these lines, of which nothing but hopscope may be imported."""
    nodes = list(ast.walk(ast.parse(python)))
    names = {alias.name for each in nodes if isinstance(each, ast.Import) for alias in each.names}
    assert names == {"hopscope"}, python
    return [each.value for each in nodes if isinstance(each, ast.Constant)]
