"""What backends have in common, and who is one."""

from collections.abc import Sequence

from hopscope.llm.backend import Backend, ScoringBackend, begun, raw_text
from hopscope.llm.local import LocalModel


class Sampling:
    """Continues, and tells no probabilities."""

    name = "sampling"

    def complete(
        self, prompts: Sequence[str], temperature: float, seeds: Sequence[int],
        openings: Sequence[str] = (),
    ) -> list[str]:  # fmt: skip
        return ["3"] * len(prompts)


def test_who_tells_probabilities_is_known_without_asking(tiny: LocalModel) -> None:
    assert isinstance(Sampling(), Backend)
    assert not isinstance(Sampling(), ScoringBackend)
    assert isinstance(tiny, ScoringBackend)


def test_a_bare_prompt_asks_for_an_answer_on_a_line_of_its_own() -> None:
    assert raw_text("Who?") == "Who?\nAnswer:"
    assert raw_text("Who?", "It is") == "Who?\nAnswer: It is"


def test_without_openings_every_answer_begins_with_nothing() -> None:
    assert begun(["a", "b"], ()) == ["", ""]
    assert begun(["a", "b"], ["x", "y"]) == ["x", "y"]
