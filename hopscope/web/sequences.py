"""A sequence of the n-gram experiment: what the model predicts, what it attends to, and what the
generalised induction head would have said.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from hopscope.configs import InductionModel, NgramExperiment
from hopscope.errors import ConfigError
from hopscope.ngram.evaluation import bayes, gih, model_answers
from hopscope.ngram.model import InductionTransformer
from hopscope.ngram.parameters import Course, set_name, sets, softmax
from hopscope.ngram.process import Chains, sample_chains
from hopscope.ngram.run import NgramRun
from hopscope.store.checkpoints import check_step
from hopscope.tasks.rendering import letters
from hopscope.web.questions import ExampleQuestion
from hopscope.web.tensors import packed

State = Mapping[str, np.ndarray]


def parameters(model: InductionModel, course: Course) -> bytes:
    """Everything trained, at every epoch that was recorded."""
    arrays = {
        "epochs": course.epochs,
        "c": course.c.astype(np.float32),
        "w": course.w.astype(np.float32),
        "a": course.a.astype(np.float32),
        "shares": course.shares.astype(np.float32),
        "attention": softmax(course.w).astype(np.float32),
    }
    return packed(arrays, {"sets": [set_name(heads) for heads in sets(model)]})


def sequence(run: NgramRun, seed: int, course: Course, asked: ExampleQuestion) -> bytes:
    """What the model of an epoch says to one sequence."""
    epoch, state = _state(run, seed, course, asked.step)
    chains = _chains(run.recipe, seed, asked)
    lags = run.recipe.process.parents
    head, found = gih(chains, run.recipe.model.window, lags)
    answers = {
        "model": model_answers(run.recipe, state, chains)[0],
        "gih": head[0],
        "bayes": bayes(chains)[0],
    }
    if asked.tokens is None:
        answers["truth"] = chains.truth()[0]
    tokens = chains.tokens[0, :-1].tolist()
    about: dict[str, Any] = {
        "epoch": epoch,
        "tokens": [{"text": letters(t), "role": "symbol", "chain": 0, "fact": 0} for t in tokens],
        "symbols": [letters(number) for number in range(run.recipe.process.alphabet)],
        "answers": {name: each.tolist() for name, each in answers.items()},
        "matched": bool(found[0]),
    }
    return packed(looked(run.recipe, state, chains) | matches(run.recipe, chains), about)


def looked(
    experiment: NgramExperiment, state: State, chains: Chains
) -> dict[str, Float[np.ndarray, "..."]]:
    """What each head copies to every position (the last: what is asked), and how the second layer
    attends; positions without a whole window are not attended to.
    """
    module = _module(experiment, state)
    window = experiment.model.window
    tokens = torch.from_numpy(chains.tokens[:, :-1].astype(np.int64))
    length = tokens.shape[1]
    with torch.no_grad():
        copied = [module.copies(*module.seen(tokens, place)) for place in range(window, length + 1)]
        similar = torch.cat([module.similarity(each, copied[-1]) for each in copied[:-1]])
        attention = torch.softmax(module.a * similar, dim=0)
    pad = (window, 0)
    return {
        "copiers": softmax(module.w.detach().numpy()).astype(np.float32),
        "copied": torch.cat(copied).transpose(0, 1).float().numpy(),
        "similarity": np.pad(similar.numpy(), pad).astype(np.float32),
        "attention": np.pad(attention.numpy(), pad).astype(np.float32),
    }


def matches(experiment: NgramExperiment, chains: Chains) -> dict[str, np.ndarray]:
    """Where the generalised induction head attends: positions whose parents are those of the end
    (all that have a whole window, if there is none).
    """
    tokens, window = chains.tokens[0, :-1], experiment.model.window
    length = len(tokens)
    same = np.array(
        [
            place >= window
            and all(
                tokens[place - lag] == tokens[length - lag] for lag in experiment.process.parents
            )
            for place in range(length)
        ]
    )
    seen = same if same.any() else np.arange(length) >= window
    return {"gih_attention": (seen / seen.sum()).astype(np.float32)}


def _state(
    run: NgramRun, seed: int, course: Course, asked: int | None
) -> tuple[int, Mapping[str, np.ndarray]]:
    """What was trained at an epoch that was recorded; of a full first layer, at a checkpoint."""
    if run.recipe.model.first == "full" or not len(course.epochs):
        state = run.state(seed, asked)
        return (run.checkpoints[-1] if asked is None else asked), state
    epochs = course.epochs.tolist()
    epoch = epochs[-1] if asked is None else asked
    check_step(epoch, epochs, run.name)
    return epoch, course.at(epochs.index(epoch)).named()


def _chains(experiment: NgramExperiment, seed: int, asked: ExampleQuestion) -> Chains:
    """The sequence: one of the validation chains, or what somebody typed."""
    process, window = experiment.process, experiment.model.window
    if asked.tokens is None:
        most = experiment.descent.validation_chains
        if asked.index >= most:
            raise ConfigError(f"index is {asked.index}; the validation chains are 0 … {most - 1}")
        every = sample_chains(process, asked.index + 1, seed, "validation")
        return Chains(process, every.tokens[-1:], every.tables[-1:])
    known = {letters(number): number for number in range(process.alphabet)}
    if unknown := [text for text in asked.tokens if text not in known]:
        raise ConfigError(
            f"there is no symbol {unknown[0]!r} here; the symbols are {', '.join(known)}"
        )
    if len(asked.tokens) <= max(window, process.memory):
        raise ConfigError(
            f"the sequence has {len(asked.tokens)} symbols; expected at least "
            f"{max(window, process.memory) + 1}, so that one position has a whole window"
        )
    tokens = np.array([[*(known[text] for text in asked.tokens), 0]], np.int8)  # 0: is not read
    rows = process.alphabet ** len(process.parents)
    tables = np.full((1, rows, process.alphabet), 1 / process.alphabet)
    typed = process.model_copy(update={"length": len(asked.tokens)})
    return replace(Chains(process, tokens, tables), process=typed)


def _module(experiment: NgramExperiment, state: State) -> InductionTransformer:
    """The model itself in this state."""
    module = InductionTransformer(experiment.model, experiment.process.alphabet)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(torch.from_numpy(np.asarray(state[name])))
    return module
