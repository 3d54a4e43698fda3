"""What is told of a run, beside what is kept of it."""

import json

import numpy as np
import pytest

from hopscope.configs import LlmBench, Prompts
from hopscope.sharing.tracked import tracked
from hopscope.store import RunFolder, Store
from hopscope.store.gallery import find
from hopscope.store.metrics import losses
from hopscope.store.parameters import values


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
    name = f"attention/{path['layer']}.{path['head']}/{path['reader']}←{path['source']}"
    told = {step: own[name] for step, own in run.rows() if name in own}
    assert told == dict(zip(kept["steps"], path["attention"], strict=True))
    ngram = tracked(find("ngram"))[0]
    rows = [own for _, own in ngram.rows()]
    told = [own["parameters/a"] for own in rows if "parameters/a" in own]
    assert np.allclose(told, values(ngram.folder, ngram.seed)["a"])
    assert {"train/loss", "validation/loss"} <= {name for own in rows for name in own}


def test_a_benchmark_tells_its_accuracy_so_far(store: Store) -> None:
    bench = LlmBench(model="m", prompts=(Prompts(formulation="f3"),), questions=4)
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
    assert told[f"guessing/{kind}"] == 0.5


def test_what_is_not_committed_is_not_told(fleet: RunFolder) -> None:
    earlier = RunFolder(fleet.path)
    earlier.manifest = earlier.manifest.model_copy(update={"step": 4})
    assert [step for step, _ in tracked(earlier)[0].rows()] == list(range(5))
