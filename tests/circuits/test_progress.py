"""What a watcher is told, by a clock that is set by hand."""

from hopscope.circuits.progress import SECONDS, Progress


def test_within_a_step_the_rest_is_told_from_what_is_done() -> None:
    said: list[str] = []
    now = [0.0]
    progress = Progress(said.append, lambda: now[0])
    progress.step("what explains 8 rows; 0.1 by it")
    progress.at(1, 8)
    now[0] = SECONDS
    progress.at(0, 8)
    progress.at(2, 8)
    progress.at(3, 8)
    assert said == [
        "what explains 8 rows; 0.1 by it",
        f"what explains 8 rows: 2 of 8, about {3 * SECONDS:.0f} s left",
    ]
    progress.step("measuring")
    now[0] = 3 * SECONDS
    progress.at(4, 5)
    assert said[-1] == f"measuring: 4 of 5, about {2 * SECONDS / 4:.0f} s left"
