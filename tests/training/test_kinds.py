"""What is asked of the wrong function, or of nothing that there is."""

import subprocess
import sys
from pathlib import Path

# In a process of its own: here, types are checked before the functions are called.
CODE = """
import sys
from hopscope import Retrieval, train
from hopscope.errors import ConfigError
for got in Retrieval(), 3, int:
    try:
        train(got, sys.argv[1])
    except ConfigError as error:
        print(error)
"""


def test_what_is_no_experiment_is_refused_before_there_is_a_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "runs")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        f"got {got}; expected a recipe of a run: Experiment (facts), MarkovExperiment (ngram), "
        "LlmBench (llm), LlmMechanism (llm-mechanism)"
        for got in ("Retrieval", "3", "<class 'int'>")
    ]
    assert not (tmp_path / "runs").exists()
