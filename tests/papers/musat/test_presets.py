import pytest

from hopscope.errors import ConfigError
from hopscope.papers import preset, presets
from hopscope.papers.preset import OURS


def test_every_preset_the_design_names_is_there() -> None:
    sweep = {f"musat/fig4-{kind}-L{n}" for kind in ("ic", "nonic") for n in range(1, 9)}
    letters = {f"musat/transformer-{letter}" for letter in "abcd"}
    assert {name for name in presets() if not name.startswith(("chen/", "task/"))} == {
        "demo",
        "musat/transformer-d-epochs",
        "musat/transformer-d-fan-in",
        "musat/transformer-d-large-batch",
    } | sweep | letters


@pytest.mark.parametrize(
    "name", [name for name in presets() if not name.startswith(("chen/", "task/"))]
)
def test_sources_name_fields_that_exist(name: str) -> None:
    found = preset(name)
    paths = {path for path, _, _ in found.fields()}
    assert set(found.sources) <= paths
    if name != "demo":
        silent = {path for path, _, source in found.fields() if source == OURS}
        assert silent <= {
            "model.d_head", "training.warmup", "training.precision", "training.checkpoint_every",
            "training.validation_examples", "training.checkpoint_at", "training.examples", "seeds",
        }  # fmt: skip


def test_the_paper_s_numbers() -> None:
    a, b, d = (preset(f"musat/transformer-{letter}").recipe for letter in "abd")
    assert (a.model.layers, a.model.heads, a.model.d_model, a.task.hops) == (12, 1, 128, 3)
    assert (a.training.steps, a.training.batch, a.training.examples) == (24_000, 128, 262_144)
    assert a.seeds != b.seeds
    assert (d.model.layers, d.model.d_model, d.model.head_width, d.model.mlp) == (
        24,
        512,
        16,
        False,
    )
    assert d.training.checkpoint_steps()[:3] == (0, 80, 160)
    epochs = preset("musat/transformer-d-epochs").recipe.training
    assert epochs.steps * epochs.batch / epochs.examples == 800
    batches = preset("musat/transformer-d-large-batch").recipe.training
    assert (batches.steps / batches.steps_per_epoch, batches.examples) == (800, 2**18)
    ic, non = (preset(f"musat/fig4-{kind}-L6").recipe for kind in ("ic", "nonic"))
    assert (ic.task.hops, non.task.hops) == (5, 3)
    assert (ic.task.curriculum, non.task.curriculum) == (True, False)
    assert (ic.model.layers, ic.model.heads, len(ic.seeds)) == (6, 8, 8)
    assert (ic.training.steps, ic.training.batch, ic.training.examples) == (10_000, 512, 2**20)
    assert {ic.training.lr, a.training.lr, d.training.lr} == {1e-3}
    assert {ic.training.weight_decay, a.training.weight_decay} == {0.1}


@pytest.mark.parametrize(
    ("name", "hint"),
    [("musat/transformer-aa", "did you mean musat/transformer-a"), ("xyz", "hopscope presets")],
)
def test_an_unknown_preset_gets_a_hint(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown preset '{name}': .*{hint}"):
        preset(name)
