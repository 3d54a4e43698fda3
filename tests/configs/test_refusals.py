"""What no config can be is refused on one line, which says what was got and what to do."""

from collections.abc import Callable
from typing import Any

import pytest
from sums import KIND

from hopscope.configs import (
    MQAR,
    Asking,
    ConditionalRetrieval,
    Descent,
    Discovery,
    Experiment,
    InductionModel,
    KHop,
    LmBench,
    LmCircuit,
    Model,
    NgramExperiment,
    NgramProcess,
    Prompts,
    Retrieval,
    Tracing,
    Training,
    read_recipe,
)
from hopscope.configs.kinds import KINDS, kind_of
from hopscope.errors import HopscopeError

F1, GREEDY = Prompts(formulation="f1", hops=1), Asking(protocol="greedy")


def asked(formulation: str, **fields: Any) -> Callable[[], Prompts]:
    return lambda: Prompts(formulation=formulation, **fields)


def bench(*prompts: Prompts, model: str = "x", **fields: Any) -> Callable[[], LmBench]:
    return lambda: LmBench(model=model, prompts=prompts, **fields)


def endpoint(opening: bool, **asking: Any) -> Callable[[], LmBench]:
    return bench(
        F1.replace(opening=opening), model="http://127.0.0.1:1/v1#x", asking=Asking(**asking)
    )


def circuit(**fields: Any) -> Callable[[], LmCircuit]:
    return lambda: LmCircuit(**{"model": "x", "prompts": Prompts(formulation="f1"), **fields})


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Retrieval(hops=0), "Retrieval.hops: Input should be greater than or equal to 1, got"),
    (lambda: Retrieval(hops=128, curriculum=False), "hops: Input should be less than or equal to"),
    (lambda: Retrieval(hop=2), "Retrieval.hop: unknown field"),
    (lambda: Retrieval(symbols="cubic"), "'gaussian', 'sphere' or 'one-hot', got 'cubic'"),
    (lambda: Retrieval(dim=3), "make it even"),
    (lambda: Retrieval(symbols="one-hot", dim=4), "16 distinct one-hot symbols need dim >= 16"),
    (lambda: Retrieval().ordered("sideways"), "got 'sideways'"),  # type: ignore[arg-type]
    (lambda: ConditionalRetrieval(facts=["a->x"] * 128), "at most 127 items"),
    (lambda: ConditionalRetrieval(facts=("a->b", "b->a")), "need each other"),
    (lambda: ConditionalRetrieval(decoys=4), "at most chains - 1 = 3"),
    (lambda: ConditionalRetrieval(decoys=1, symbols="one-hot", dim=18), "need dim >= 20"),
    (lambda: KHop(alphabet=1), "KHop.alphabet: Input should be greater than or equal to 2, got 1"),
    (lambda: MQAR(pairs=1), "MQAR.pairs: Input should be greater than or equal to 2, got 1"),
    (lambda: MQAR(queries=5), "queries is 5; no pair is asked for twice, so 4 pairs have at most"),
    (lambda: MQAR(length=15), "need length >= 16"),
    (lambda: MQAR(length=11, queries=2), "need length >= 12"),
    (lambda: MQAR(alphabet=7), "need alphabet >= 8"),
    (lambda: MQAR(power=0), "MQAR.power: Input should be greater than 0, got 0"),
    (lambda: MQAR(power=1.5), "MQAR.power: Input should be less than or equal to 1, got 1.5"),
    (lambda: Experiment(task={"kind": "sorting"}), "'sorting'"),
    (lambda: Experiment(seeds=(1, 1)), "seeds"),
    (lambda: Experiment(seeds=()), "seeds"),
    (lambda: Experiment(seeds=(-1,)), "seeds"),
    (lambda: Experiment(seeds=(2**31,)), "seeds"),
    (lambda: Experiment(seeds=(0.5,)), "seeds"),  # type: ignore[arg-type]
    (lambda: Model(heads=0, layers=0), "(and 1 more)"),
    (lambda: Model(heads=3, d_model=128), "choose a divisor or set d"),
    (lambda: Model(layers=10**400), "layers: Input should be less than 2147483648, got 1000"),
    (lambda: Model(norm="x" * 10**6), "…"),
    (lambda: Model(heads=True), "expected a number, got True"),
    (lambda: Model(layers="4"), "expected a number, got '4'"),  # type: ignore[arg-type]
    (lambda: Training(betas=(1, 0.9)), "betas.0: Input should be less than 1"),
    (lambda: Training(examples=2**63), "examples: Input should be less than or equal to 109951162"),
    (lambda: Training(warmup=10**400), "warmup: Input should be less than 2147483648, got 1000"),
    (lambda: Training(steps=2**31 - 1, validate_every=10), "validate_every 10: that is 214,748,36"),
    (lambda: Training(steps=2**31 - 1, validate_every=1_000), "checkpoint_every 500: that is 4,2"),
    (lambda: Training(steps=9, checkpoint_at=(9, 10)), "checkpoint_at has step 10, but the traini"),
    (lambda: Discovery().replace(tie=0.5), "Discovery.tie: Input should be greater than or"),
    (lambda: Discovery().replace(neded=0.1), "Discovery.neded: unknown field; did you mean needed"),
    (lambda: NgramProcess(parents=(1, 1)), "parents are (1, 1): each lag may appear once"),
    (lambda: NgramProcess(parents=()), "parents"),
    (lambda: NgramProcess(alpha=1e-310), "it is divided by, so take at least 1e-300"),
    (lambda: InductionModel(degree=4), "degree is 4, but there are 3 heads"),
    (lambda: InductionModel(c=1e-120), "coefficients are squared, so take at least 1e-100"),
    (lambda: Descent(stages="C,,a"), "stages is 'C,,a'; expected the letters C, W and a"),
    (lambda: Descent(stages="CC"), "stage 'CC' names a letter twice"),
    (lambda: Descent(epochs=(1, 2)), "epochs has 2 entries, but stages 'C,W,a' are 3"),
    (lambda: Descent(chains=5, batch=6), "batch is 6, but there are 5 chains"),
    (lambda: NgramExperiment(process={"parents": (4,)}), "the largest parent is at lag 4"),
    (lambda: NgramExperiment(process={"length": 3}), "make it at least 4"),
    (asked("f6"), "Prompts.formulation: Input should be 'equations', 'lives-with'"),
    (asked("f1", depth=3), "Prompts.depth: unknown field"),
    (asked("f1", hops=21), "Prompts: hops is 21; a question has 1 to 20: ask for fewer"),
    (asked("f1", chains=1), "Prompts.chains: Input should be greater than or equal to 2, got 1"),
    (asked("f3", hops=3), "hops is 3; kingdoms always has a depth of 5: leave hops out, or ask fo"),
    (asked("f4", hops=2), "Prompts: hops is 2; functions always has a depth of 2"),
    (asked("f3", chains=40), "kingdoms has words for 8: ask for fewer, or for equations or funct"),
    (asked("f2", chains=27), "Prompts: chains is 27; lives-with has words for 26"),
    (lambda: Asking(protocol="guess"), "'exact', 'paper' or 'greedy', got 'guess'"),
    (bench(), "prompts"),
    (
        bench(F1, model="a\x1b[31m"),
        r"LmBench.model: String should match pattern '^\P{C}*$', got 'a",
    ),
    (circuit(model="a\u202eb"), "LmCircuit.model: String should match pattern"),
    (bench(F1, F1), "once"),
    (bench(F1, seeds=(0, 1)), "a benchmark has one"),
    (bench(F1, model="http://x/v1", asking=GREEDY), "write the model's name after the URL, as"),
    (endpoint(False), "an endpoint gives no probabilities: use --protocol paper or greedy"),
    (endpoint(True, protocol="greedy"), "a chat endpoint begins its answers itself"),
    (lambda: Experiment.from_json("{"), "Experiment: Invalid JSON"),
    (
        lambda: Experiment.from_json('{"task": {"kind": "nope"}}'),
        "Experiment.task: unknown 'kind' 'nope'; expected 'retrieval', 'induction', ",
    ),
    (
        lambda: Experiment.from_json('{"task": {"hops": 3}}'),
        "Experiment.task: no 'kind', got {'hop",
    ),
    (lambda: read_recipe('{"kind": "dreams"}'), "kind is 'dreams'; expected one of facts, ngram"),
    (lambda: read_recipe("{}"), "a recipe's kind is None; expected one of facts"),
    (lambda: read_recipe('{"kind": "sums", "task": {}}'), "Sums.task: unknown field"),
    (lambda: read_recipe('{"kind": ["facts"]}'), "kind is ['facts']; expected one of"),
    (lambda: read_recipe('{"kind": "facts", "experiment": "ngram"}'), "experiment: unknown field"),
    (lambda: read_recipe("[1]"), "a recipe is a JSON object; got [1]"),
    (lambda: kind_of(Retrieval()), "got Retrieval; expected a recipe of a run: Experiment (facts)"),
    (lambda: kind_of(int), "got <class 'int'>; expected a recipe of a run"),
    (circuit(model="http://127.0.0.1:1/v1#x"), "is an endpoint, which shows no weights"),
    (circuit(seeds=(0, 1)), "a circuit is searched with one"),
    (
        circuit(questions=14, tracing=Tracing(searched=15)),
        "14 questions: give --search-questions 14",
    ),
    (circuit(prompts=Prompts(formulation="f1", chains=2)), "cannot be paired: answers are"),
    (circuit(elsewhere=Prompts(formulation="f4")), "equations-d5 has no role 'key 2.1'"),
    (lambda: read_recipe("{"), "a recipe is JSON, and this is not"),
]


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "sums", KIND)
    for make, text in REFUSED:
        line = "was not refused"
        try:
            make()
        except HopscopeError as error:
            line = str(error)
        assert text in line
        assert "\n" not in line, text
        assert len(line) <= 200, line


def test_what_is_just_possible_is_not_refused() -> None:
    assert Training(examples=2**40, steps=2**22, validate_every=1).steps == 2**22
    task = MQAR(pairs=4, alphabet=8, length=16)
    assert (task.asked, task.keys, task.query_slots) == (4, 4, 4)
    assert MQAR(pairs=4, alphabet=8, length=12, queries=2).query_slots == 2
    assert Model(heads=3, d_model=128, d_head=16).head_width == 16


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Model().layers = 3  # type: ignore[misc]
