"""Whatever is not reproduced has a reason, and the experiment behind it comes out as it says."""

import json
import re
import shlex

import pytest

from hopscope.cli.main import run
from hopscope.papers.musat.reasons import REASONS
from hopscope.papers.registry import PAPERS

ON_THE_GALLERY = [
    name
    for name, reason in REASONS.items()
    if reason.command.startswith("hopscope ablate gallery/")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_THE_GALLERY)
def test_the_experiment_comes_out_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    reason = PAPERS.claims[name].reason
    assert reason is not None
    assert run([*shlex.split(reason.command)[1:], "--json"]) == 0
    changed = json.loads(capsys.readouterr().out)[-1]["loss"]
    assert f"{changed:.2f}" in re.findall(r"\d\.\d\d", reason.says)
