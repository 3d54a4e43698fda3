"""A later hopscope, whose configs have more fields, opens everything that is there today."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.configs import Experiment
from hopscope.runs import train
from hopscope.store import Store

PACKAGE = Path(__file__).parents[1] / "hopscope"
LATER = {
    "model.py": ("    layers: Positive = 4\n", "    dropout: Real = 0.0\n"),
    "training.py": ("    warmup: Annotated[Whole, Field(ge=0)] = 0\n", "    clip: Real = 1.0\n"),
    "tasks/vector.py": ("    hops: Hops = 3\n", "    noise: Real = 0.0\n"),
    "experiment.py": ("    seeds: Seeds = (0,)\n", '    note: str = ""\n'),
    "ngram.py": ("    seeds: Seeds = (0,)\n", '    note: str = ""\n'),
}
OPENED = """
import json
import sys
from pathlib import Path

from hopscope.circuits import Circuit
from hopscope.configs import Experiment, Model
from hopscope.papers.registry import PAPERS
from hopscope.papers.results import Results
from hopscope.runs import opened
from hopscope.store import Store, gallery

found = set()
assert Experiment(model=Model(dropout=0.5)).digest() != Experiment().digest()
for name in gallery.names():
    folder = gallery.find(name)
    assert folder.verify() == []
    assert opened(folder).checkpoints
    if "circuit.json" in folder.manifest.files:
        assert Circuit.from_dict(json.loads(folder.read("circuit.json"))).heads
store = Store("runs")
(name,) = store.names()
assert opened(store.find(name)).final_losses().shape == (1, 2)
assert store.create(store.find(name).recipe).manifest.complete
assert store.sql("select count(*) from runs").rows() == [(1,)]
results = Results(Path(sys.argv[1]), PAPERS.experiments)
for name, target in PAPERS.experiments.items():
    table = results.shown(name)
    if table is not None and target.recipes and not table.missing:
        known = target.runs(table.protocol).keys()
        assert set(table.names) <= known, name
        found.add(name)
assert len(found) > 10, found
"""


@pytest.mark.slow
def test_a_field_is_added_to_every_config(tmp_path: Path, tiny: Experiment) -> None:
    train(tiny, Store(tmp_path / "runs"), "cpu")
    later = tmp_path / "hopscope"
    shutil.copytree(PACKAGE, later)
    for name, (line, added) in LATER.items():
        source = (later / "configs" / name).read_text()
        assert source.count(line) == 1, name
        (later / "configs" / name).write_text(source.replace(line, line + added))
    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(PACKAGE.parent / "results")],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
