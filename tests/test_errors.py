"""The tree of errors: drawn as it is, with a sentence and an exit code for each."""

import inspect
import re

import pytest

import hopscope
from hopscope import errors
from hopscope.errors import ConfigError, Diverged, HopscopeError, Interrupted

ALL = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and kind.__module__ == errors.__name__
}


def drawn() -> dict[str, str]:
    """Each error of the module's picture, and the one that it hangs from."""
    tree: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"(    [│ ├└─]*)([A-Z]\w+)(?:\s|$)", line):
            depth, name = len(match[1]), match[2]
            above = [(at, its) for at, its in above if at < depth]
            tree[name] = above[-1][1] if above else ""
            above.append((depth, name))
    return tree


def test_the_picture_is_the_tree() -> None:
    tree = drawn()
    assert set(ALL) - {"RunWarning"} == set(tree) - {"KeyboardInterrupt"}
    for name, parent in tree.items():
        if parent:
            assert ALL[name].__base__.__name__ == parent


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_error_has_a_sentence_and_an_exit_code(name: str) -> None:
    kind = ALL[name]
    assert (kind.__doc__ or "").strip().endswith(".")
    if issubclass(kind, HopscopeError):
        assert kind.exit_code == (3 if kind is Diverged else 2)


def test_an_interruption_is_caught_by_no_loop_over_trainings() -> None:
    assert not issubclass(Interrupted, Exception)
    shown = Interrupted("stopped at step 3")._render_traceback_()
    assert shown == ["Interrupted: stopped at step 3"]


def test_a_notebook_shows_ones_own_line_and_the_text() -> None:
    with pytest.raises(ConfigError) as caught:
        hopscope.load(name="gallery/demo", seed=7)
    *own, said = caught.value._render_traceback_()
    assert said == "ConfigError: seed is 7; gallery/demo has the seeds 0"
    assert own[0].endswith(': hopscope.load(name="gallery/demo", seed=7)')
    assert not any("Study(" in line or "opened(" in line for line in own)
