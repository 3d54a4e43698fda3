"""From tables to verdicts: what is missing, lesser protocols, other versions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from musat_rows import ABC, ASKED, IC, KNOWN, NONIC, bent, saved, tables, with_

from hopscope.papers.claim import Claim, Finding
from hopscope.papers.musat.claims import CLAIMS
from hopscope.papers.registry import PAPERS
from hopscope.papers.results_folder import Results
from hopscope.papers.table import Table


def findings(results: Results) -> Mapping[str, tuple[Claim, Finding]]:
    return {claim.id: (claim, claim.finding(results)) for claim in CLAIMS}


def test_what_is_missing_names_its_commands(tmp_path: Path) -> None:
    for claim, found in findings(PAPERS.results(tmp_path)).values():
        assert (found.ours, found.verdict) == ("–", "not measured")
        commands = [f"`hopscope reproduce {target}`" for target in claim.targets]
        assert found.evidence == ", ".join(commands)
    results = saved(tmp_path, {IC: tables()[IC]}, "full")
    _, found = findings(results)["musat/ic-essential"]
    assert found == Finding("–", "not measured", "`hopscope reproduce musat/fig4-nonic`")


def test_a_table_without_rows_is_not_measured(tmp_path: Path) -> None:
    results = saved(tmp_path, {target: [] for target in tables()}, "full")
    for claim, found in findings(results).values():
        assert found.verdict == "not measured"
        assert f"`hopscope reproduce {claim.targets[0]}`" in found.evidence


def test_full_tables_decide(tmp_path: Path) -> None:
    for claim, found in findings(saved(tmp_path / "as it should be", tables(), "full")).values():
        assert found.verdict == ("under a reading" if ASKED in claim.targets else "reproduced")
        assert claim.targets[0] in found.basis
    results = saved(tmp_path / "bent", bent(NONIC, 1, final=[0.69]), "full")
    verdicts = {name: found.verdict for name, (_, found) in findings(results).items()}
    assert verdicts["musat/nonic-above-0.7"] == "not reproduced"
    assert verdicts["musat/ic-essential"] == "reproduced"


def test_a_part_counts_where_the_judge_takes_it(tmp_path: Path) -> None:
    law = KNOWN["musat/depth-law"]
    results = saved(tmp_path, {IC: tables()[IC]}, "full")
    alone = law.finding(results)
    rows = tuple(with_(row, run="one") for row in tables()[law.beside[0]])
    for protocol, models in (
        ("smoke", "3 models: 1 each of 1, 2, 3 layers"),
        ("full", "4 models: 2 of 2 layers, 1 each of 1, 3 layers"),
    ):
        results.save_part(Table(law.beside[0], protocol, rows, wanted=24))
        with_part = law.finding(results)
        assert with_part.evidence.endswith(f"; {models}")
    assert alone.evidence.endswith("; 3 models: 1 each of 1, 2, 3 layers")


def test_a_table_whose_models_were_all_trained_longer_elsewhere_does_not_count(
    tmp_path: Path,
) -> None:
    law = KNOWN["musat/depth-law"]
    short = [with_(row, steps=100, run=None) for row in tables()[IC]]
    results = saved(tmp_path, {IC: short}, "reduced")
    longer = [with_(row, run=f"of {row.layers}") for row in tables()[IC]]
    for rows, verdict, told in ((longer[:2], "under a reading", IC), (longer, "reproduced", "")):
        results.save_part(Table(law.beside[0], "full", tuple(rows), wanted=24))
        found = law.finding(results)
        assert found.verdict == verdict
        assert (f"{IC}: " in found.basis) == bool(told) == (IC in found.evidence)


def test_models_of_a_lesser_protocol_beside_full_ones_confirm_nothing(tmp_path: Path) -> None:
    law = KNOWN["musat/depth-law"]
    results = saved(tmp_path, {IC: tables()[IC]}, "full")
    assert law.finding(results).verdict == "reproduced"
    others = tuple(with_(row, seed=9, run=f"of {row.layers}") for row in tables()[IC])
    results.save_part(Table(law.beside[0], "reduced", others, wanted=24))
    found = law.finding(results)
    assert found.verdict == "under a reading"
    assert found.evidence.endswith(f"which cannot confirm it: {law.beside[0]}, another protocol")


def test_a_claim_names_all_that_it_is_judged_from() -> None:
    assert KNOWN["musat/depth-law"].sources == (IC, "musat/fig4-seeds")


def test_a_smoke_table_decides_nothing(tmp_path: Path) -> None:
    for _, found in findings(saved(tmp_path, tables(), "smoke")).values():
        assert found == Finding("–", "not measured", "smoke protocol: not the paper's models")


def test_nor_does_it_beside_a_part_of_models_as_large_as_the_papers(tmp_path: Path) -> None:
    results = saved(tmp_path, tables(), "full")
    few = tuple(with_(row, hops=2, final=row.final[:2]) for row in tables()[IC])
    results.path(IC).unlink()
    results.save(Table(IC, "smoke", few))
    rows = tuple(with_(row, run="one") for row in tables()[IC][:1])
    results.save_part(Table("musat/fig4-seeds", "reduced", rows, wanted=16))
    for claim, found in findings(results).values():
        assert (found.verdict == "not measured") == (IC in claim.targets)


def test_one_smoke_table_of_two_decides_nothing(tmp_path: Path) -> None:
    results = saved(tmp_path, tables(), "full")
    results.path(NONIC).unlink()
    results.save(Table(NONIC, "smoke", tuple(tables()[NONIC])))
    assert findings(results)["musat/ic-essential"][1].verdict == "not measured"
    assert findings(results)["musat/later-deeper"][1].verdict == "reproduced"


def test_a_reduced_table_is_named(tmp_path: Path) -> None:
    full = saved(tmp_path / "full", tables(), "full")
    for claim, found in findings(saved(tmp_path / "reduced", tables(), "reduced")).values():
        whole = claim.finding(full)
        assert all(f"{target}: reduced protocol" in found.basis for target in claim.targets)
        assert "protocol" not in whole.basis
        evidence = whole.evidence
        if claim.only_full:
            assert (found.verdict, whole.verdict) == ("under a reading", "reproduced")
            evidence += "; holds with less training than the paper's, which cannot confirm it: "
            evidence += " / ".join(
                f"{target}, another protocol" for target in (*claim.targets, *claim.beside)
            )
        else:
            assert found.verdict == whole.verdict
        assert found.evidence == evidence


def test_a_reduced_table_can_refute_never(tmp_path: Path) -> None:
    assert [claim.id for claim in CLAIMS if claim.only_full] == [
        "musat/nonic-above-0.7",
        "musat/ic-essential",
        "musat/later-harder",
        "musat/later-deeper",
        "musat/depth-law",
        "musat/hops-in-order",
    ]
    rows = bent(NONIC, 1, final=[0.69])
    _, found = findings(saved(tmp_path, rows, "reduced"))["musat/nonic-above-0.7"]
    assert found.verdict == "not reproduced"


def test_a_table_that_lacks_runs_is_not_judged(tmp_path: Path) -> None:
    results = saved(tmp_path, tables(), "full")
    whole = results.table(NONIC)
    rows = tuple(with_(row, run=f"run {number}") for number, row in enumerate(whole.rows))
    results.save(replace(whole, rows=rows, wanted=3))
    assert KNOWN["musat/nonic-above-0.7"].finding(results).verdict == "reproduced"
    results.save(replace(whole, rows=rows, wanted=4))
    assert KNOWN["musat/nonic-above-0.7"].finding(results).verdict == "not measured"


def test_rows_of_another_version_are_told(tmp_path: Path) -> None:
    results = saved(tmp_path, tables(), "full")
    path = results.path(ABC)
    path.write_text(path.read_text().replace('"needed"', '"wanted"', 1))
    found = findings(results)
    assert found["musat/abc-mostly-idle"][1].verdict == "not measured"
    assert found["musat/abc-mostly-idle"][1].evidence == (
        f"line 2 of {path} is damaged or of another hopscope ('CircuitRow.needed': Field "
        f"required): `hopscope reproduce {ABC}` measures it anew"
    )
    assert found["musat/d-loss"][1].verdict == "reproduced"
