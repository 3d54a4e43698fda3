"""Presets of Chen et al. (NeurIPS 2024)."""

from hopscope.configs import Descent, InductionModel, NgramExperiment, NgramProcess
from hopscope.papers.preset import Preset

SOURCES = {
    "process.alphabet": "appendix B: 3",
    "process.parents": "appendix B: 1 and 2",
    "process.alpha": "appendix B: 0.1",
    "process.length": "appendix B: 100",
    "process.start": "§2.1",
    "model.heads": "appendix B: 3",
    "model.window": "appendix B: 3",
    "model.degree": "appendix B: 2",
    "model.constant": "§2.2",
    "model.unit_copies": "§2.2",
    "model.first": "§2.2",
    "model.own": "appendix B: 3",
    "model.other": "appendix B: 0.01",
    "model.c": "appendix B: 0.01",
    "model.a": "appendix B: 0.01",
    "model.noise": "ours: only a full first layer has random matrices",
    "descent.stages": "appendix B: C, then W, then a",
    "descent.epochs": "appendix B: 2,000, 50,000 and 5,000",
    "descent.lr": "appendix B: 1",
    "descent.chains": "appendix B: 9,000",
    "descent.validation_chains": "appendix B: 1,000",
    "descent.batch": "appendix B: all chains",
    "descent.loss": "§2.2",
    "descent.epsilon": "ours: §2.2 gives no value",
    "descent.records": "ours",
}


def presets() -> dict[str, Preset[NgramExperiment]]:
    """Return the presets of the paper's experiment, and of the authors' program."""
    program = NgramExperiment(
        process=NgramProcess(start="uniform"),
        model=InductionModel(constant=True, unit_copies=True, other=0.1),
        descent=Descent(stages="CWa", epochs=(50_000,), loss="softmax"),
    )
    changed = ("process.start", "model.constant", "model.unit_copies", "model.other",
               "descent.stages", "descent.epochs", "descent.loss")  # fmt: skip
    theirs = {**SOURCES, **dict.fromkeys(changed, "the authors' program")}
    found = (
        Preset("chen/paper", "the n-gram experiment in three stages", NgramExperiment(), SOURCES),
        Preset("chen/program", "the same as the authors' program has it", program, theirs),
    )
    return {each.name: each for each in found}
