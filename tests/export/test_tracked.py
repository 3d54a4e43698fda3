"""What trackers and cards show of a run, beside its files."""

import json

import numpy as np
import pytest

from hopscope.configs import LmBench, Prompts, read_recipe
from hopscope.export.card import FIGURE, card
from hopscope.export.tracked import tracked
from hopscope.store import RunFolder, Store
from hopscope.store.gallery import find
from hopscope.store.metrics import losses, parameter_series


def test_every_loss_is_told_once_at_its_step(fleet: RunFolder) -> None:
    first, second = tracked(fleet)
    rows = second.rows()
    assert [step for step, _ in rows] == list(range(7))
    told = {(step, name): value for step, own in rows for name, value in own.items()}
    kept = {
        (int(step), f"{split}/loss/x{hop + 1}"): float(value)
        for split in ("train", "validation")
        for steps, found in [losses(fleet, split)]
        for step, own in zip(steps, found[:, 1], strict=True)
        for hop, value in enumerate(own)
    }
    assert told == kept
    assert first.rows() != rows


def test_a_model_of_a_fleet_has_a_name_and_settings_of_its_own(fleet: RunFolder) -> None:
    first, second = tracked(fleet)
    digest = fleet.recipe.digest()[:10]
    assert (first.id, second.id) == (f"{digest}-3", f"{digest}-5")
    assert (second.name, second.group) == (f"{fleet.name}-seed-5", fleet.name)
    assert second.settings["seed"] == 5
    assert second.settings["model.layers"] == 2
    assert "seeds" not in second.settings
    assert not [value for value in second.settings.values() if isinstance(value, dict | list)]


def test_attention_and_parameters_are_told_where_they_are_kept(demo: RunFolder) -> None:
    (run,) = tracked(demo)
    kept = json.loads(demo.read("emergence.json"))
    path = kept["paths"][0]
    name = f"attention/{path['layer']}.{path['head']}/{path['source']}→{path['destination']}"
    told = {step: own[name] for step, own in run.rows() if name in own}
    assert told == dict(zip(kept["steps"], path["attention"], strict=True))
    ngram = tracked(find("ngram"))[0]
    rows = [own for _, own in ngram.rows()]
    told = [own["parameters/a"] for own in rows if "parameters/a" in own]
    assert np.allclose(told, parameter_series(ngram.folder, ngram.seed)["a"])
    assert {"train/loss", "validation/loss"} <= {name for own in rows for name in own}


def test_a_benchmark_tells_its_accuracy_so_far(store: Store) -> None:
    bench = LmBench(model="m", prompts=(Prompts(formulation="f3"),), questions=4)
    folder = store.create(bench)
    assert tracked(folder)[0].rows() == []
    kind = bench.prompts[0].label
    lines = "".join(
        json.dumps({"kind": kind, "index": n, "correct": "a", "probabilities": {"a": a, "b": 0.2}})
        + "\n"
        for n, a in enumerate((0.6, 0.2))
    )
    folder.commit({"answers/part-00000000-00000002.jsonl": lines.encode()}, step=2)
    ((step, told),) = tracked(folder)[0].rows()
    assert step == 2
    assert told[f"accuracy/{kind}"] == pytest.approx((0.75 + 0.5) / 2)
    assert told[f"chance/{kind}"] == 0.5


def test_what_is_not_committed_is_not_told(fleet: RunFolder) -> None:
    earlier = RunFolder(fleet.path)
    earlier.manifest = earlier.manifest.model_copy(update={"step": 4})
    assert [step for step, _ in tracked(earlier)[0].rows()] == list(range(5))


def page(folder: RunFolder) -> str:
    return card(folder, "me/mine", "mit")["README.md"].decode()


def test_a_card_tells_losses_seed_by_seed_and_makes_the_run_again(fleet: RunFolder) -> None:
    shown = page(fleet)
    _, found = losses(fleet, "validation")
    for seed, own in zip((3, 5), found[-1], strict=True):
        assert f"| {seed} | {own[0]:.4g} | {own[1]:.4g} |" in shown
    assert FIGURE not in shown
    assert read_recipe(shown.partition("```json\n")[2].partition("```")[0]) == fleet.recipe
    assert f'hopscope.load("{fleet.name}")' in shown
    assert shown.startswith("---\nlibrary_name: hopscope\nlicense: mit\n")


def test_cards_say_what_a_run_has_and_what_it_lacks(demo: RunFolder, empty: RunFolder) -> None:
    files = card(demo, "me/mine", "mit")
    assert files[FIGURE].startswith(b"\x89PNG")
    shown = files["README.md"].decode()
    assert f"![circuit]({FIGURE})" in shown
    assert 'hopscope.load("me--mine")' in shown
    assert "## Validation loss after epoch" in page(find("ngram"))
    assert "Not complete: it stands at step 0 of 6; `hopscope resume` goes on" in page(empty)
    assert "## Validation" not in page(empty)
    assert "## Make it again" not in page(find("planted"))


def test_a_card_gives_the_losses_of_the_weights_not_of_the_end_of_the_training() -> None:
    shown = page(find("transformer-b"))
    assert "## Validation loss after step 22,500\n" in shown
    assert "| 1 | 0.002606 |" in shown
    assert "The weights are those of step 22,500 of 24,000." in shown


def test_a_card_of_a_fleet_says_whose_circuit_it_shows(fleet: RunFolder, store: Store) -> None:
    own = store.copy(fleet, "own")
    own.commit({"circuit-seed-5.json": find("demo").read("circuit.json")})
    assert "## Circuit of seed 5\n" in page(own)
