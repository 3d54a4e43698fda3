"""Whatever is not reproduced has a reason, and the experiment behind it comes out as it says."""

import json
import re
import shlex
from pathlib import Path

import pytest

from hopscope.cli.main import run
from hopscope.papers.musat.reasons import REASONS
from hopscope.papers.registry import PAPERS

MEASURED = PAPERS.results(Path(__file__).parents[3] / "results")
ON_THE_GALLERY = {
    name: reason
    for name, reason in REASONS.items()
    if reason.command.startswith("hopscope ablate gallery/")
}


def test_reasons_are_of_claims() -> None:
    assert set(REASONS) <= set(PAPERS.claims)


def test_no_claim_is_not_reproduced_without_a_reason() -> None:
    found = {name: claim.finding(MEASURED) for name, claim in PAPERS.claims.items()}
    failing = [name for name, each in found.items() if each.verdict == "not reproduced"]
    assert failing
    assert [name for name in failing if PAPERS.claims[name].why(found[name]) is None] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_THE_GALLERY)
def test_the_experiment_comes_out_so(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    reason = ON_THE_GALLERY[name]
    assert run([*shlex.split(reason.command)[1:], "--json"]) == 0
    changed = json.loads(capsys.readouterr().out)[-1]["loss"]
    assert f"{changed:.2f}" in re.findall(r"\d\.\d\d", reason.says)
