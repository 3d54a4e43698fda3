"""Rows are kept as they come, and whoever cannot be taken apart is refused in one line."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hopscope.configs import LlmMechanism, Prompts, Tracing
from hopscope.errors import ConfigError, Interrupted, NotLearned, RunDamaged, RunMismatch
from hopscope.llm.local import LocalModel
from hopscope.llm.rows import PART, ROWS, Measured, of_phase, rows_of
from hopscope.llm.tracer import Tracer, trace
from hopscope.llm.weighing import check_answers, check_sure, followed
from hopscope.runs.life import complete
from hopscope.runs.stop import Stop
from hopscope.store import RunFolder, Store

Planted = Callable[[bool], LocalModel]


class StopsAt:
    """Asks a run to stop after a number of questions."""

    def __init__(self, stop: Stop, step: int) -> None:
        self.stop_, self.step = stop, step

    def start(self, folder: RunFolder, step: int) -> None:
        return None

    def advance(self, step: int, latest: object) -> None:
        if step >= self.step:
            self.stop_.ask("test")

    def stop(self) -> None:
        return None


def stopped(recipe: LlmMechanism, model: LocalModel, store: Store, step: int) -> None:
    stop = Stop()
    with pytest.raises(Interrupted):
        complete(
            recipe, lambda folder: Tracer(recipe, model, folder), store, StopsAt(stop, step), stop
        )


def test_a_run_that_was_stopped_ends_with_the_rows_of_one_left_alone(
    planted: Planted, traced: Callable[[bool], Path], recipe: LlmMechanism, tmp_path: Path
) -> None:
    whole = (traced(True) / ROWS).read_bytes()
    store = Store(tmp_path)
    for step in (4, 11, 14):
        stopped(recipe, planted(True), store, step)
        assert store.create(recipe).files(PART)
    folder = trace(recipe, lambda: planted(True), store)
    assert (folder.path / ROWS).read_bytes() == whole
    assert folder.verify() == []
    assert trace(recipe, pytest.fail, store).path == folder.path  # complete: no model is made


def test_other_weights_do_not_go_on(planted: Planted, recipe: LlmMechanism, store: Store) -> None:
    stopped(recipe, planted(True), store, 1)
    with pytest.raises(RunMismatch, match="begun with other weights than planted has now"):
        trace(recipe, lambda: planted(False), store)


def test_a_model_that_guesses_is_refused(
    make_tiny: Callable[..., LocalModel], recipe: LlmMechanism, tmp_path: Path
) -> None:
    with pytest.raises(NotLearned, match=r"planted answers equations-d2 at guessing level: \d+ of"):
        trace(recipe, lambda: make_tiny("raw", 3), str(tmp_path))


def test_another_formulation_that_it_guesses_is_refused_before_any_patch(
    planted: Planted, recipe: LlmMechanism, tmp_path: Path
) -> None:
    other = Prompts(formulation="equations", hops=2, opening=True)
    both = recipe.model_copy(update={"elsewhere": other})
    with pytest.raises(NotLearned, match=r"answers equations-d2-opened at guessing level: 1 of 3"):
        trace(both, lambda: planted(True), str(tmp_path))
    assert {row["phase"] for row in rows_of(Store(tmp_path).create(both))} == {"answers"}


class GuessesAnew(Tracer):
    """Of a model that knows none of the questions that are to prove its circuit."""

    def _asked(self, phase: str, prompts: Prompts, its: Sequence[str]) -> list[Measured]:
        return [{**row, "right": False} for row in super()._asked(phase, prompts, its)]


def test_fresh_questions_that_it_guesses_are_refused_before_any_patch(
    planted: Planted, recipe: LlmMechanism, tmp_path: Path
) -> None:
    with pytest.raises(NotLearned, match=r"answers equations-d2 at guessing level: 0 of 3"):
        complete(recipe, lambda folder: GuessesAnew(recipe, planted(True), folder), tmp_path)
    assert {row["phase"] for row in rows_of(Store(tmp_path).create(recipe))} == {"answers"}


def test_too_few_questions_are_refused(recipe: LlmMechanism) -> None:
    clean = {name: [1.0, 1.0, 0.0] for name in followed(recipe)}
    unsure = [{"right": True, "acceptable": 4, "clean": {**clean, "x1": [1.0, 3.0, 0.0]}}] * 3
    with pytest.raises(NotLearned, match=r"on 3 questions \(x0, x2, x1…\): take more \(--mapped\)"):
        check_sure(recipe, unsure, followed(recipe), "mapped")
    with pytest.raises(NotLearned, match=r"take more \(--proved\)"):
        check_answers(recipe, recipe.prompts, unsure, followed(recipe), "proved")


def test_more_questions_of_another_formulation_can_be_asked(
    planted: Planted, recipe: LlmMechanism, tmp_path: Path
) -> None:
    tracing = recipe.tracing.model_copy(update={"proved_elsewhere": 5})
    both = recipe.model_copy(update={"elsewhere": recipe.prompts, "tracing": tracing})
    folder = trace(both, lambda: planted(True), str(tmp_path))
    assert len(of_phase(rows_of(folder), "proof")) == 3
    assert len(of_phase(rows_of(folder), "elsewhere")) == 5


def test_what_is_no_row_is_refused(recipe: LlmMechanism, tmp_path: Path) -> None:
    one = b'{"phase": "roles", "index": 0}\n'
    for number, (text, reason) in enumerate((
        (one * 2, "phase roles has questions that were not asked, or twice"),
        (b"{", "holds what is no row of it"),
        (b"[]", "holds what is no row of it"),
        (b'{"phase": "other", "index": 0}', "holds what is no row of it"),
        (b'{"phase": "roles"}', "holds what is no row of it"),
    )):  # fmt: skip
        folder = Store(tmp_path / str(number)).create(recipe)
        folder.commit({f"{PART}00000000.jsonl": text}, step=2)
        with pytest.raises(RunDamaged, match=reason):
            rows_of(folder)


MISTAKES = [
    ({"model": "http://127.0.0.1:1/v1#x"}, "is an endpoint, which shows no weights"),
    ({"seeds": (0, 1)}, "a mechanism is searched with one"),
    ({"questions": 4, "tracing": Tracing(searched=5)}, "searched is 5 of 4 questions"),
    ({"questions": 4, "tracing": Tracing(mapped=5, searched=2)}, "mapped is 5 of 4 questions"),
    ({"tracing": Tracing(searched=2, draws=2, met=3)}, "met is 3 of 2 draws"),
    ({"prompts": Prompts(formulation="f1", hops=2, chains=2)}, "cannot be paired: answers are"),
    ({"elsewhere": Prompts(formulation="functions")}, "equations-d2 has no role 'key 2'"),
    ({"elsewhere": Prompts(formulation="f2", hops=1)}, "lives-with-d1 has no role 'key 1'"),
]


def test_what_cannot_be_traced_is_one_line(recipe: LlmMechanism) -> None:
    for changed, answer in MISTAKES:
        fields = {name: getattr(recipe, name) for name in LlmMechanism.model_fields} | changed
        with pytest.raises(ConfigError, match=answer) as refused:
            LlmMechanism(**fields)
        assert len(str(refused.value).splitlines()) == 1
