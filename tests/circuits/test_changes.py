"""Changes as text: whole heads, rows of them, and what is refused."""

import pytest
import torch

from hopscope.circuits import Ablation, Ablator, Carried, exam_of, subject_of
from hopscope.circuits.changes import changes_of
from hopscope.circuits.mechanism import AS_IS, ITSELF, PREVIOUS, UNIFORM, Mechanism, aim
from hopscope.configs import Retrieval
from hopscope.errors import ConfigError, FactError
from hopscope.facts import Role
from hopscope.models.planted import planted

QUERY, VALUE, KEY = Role("query"), Role("value"), Role("key")


def test_whole_heads_are_read_from_their_text() -> None:
    assert changes_of(["3.0=itself"]) == {(3, 0): Mechanism(rest=ITSELF)}
    assert changes_of(["0.11=resample"]) == {(0, 11): Carried("resample")}
    paths = Mechanism(((QUERY, aim("own", VALUE)), (VALUE, aim("own", KEY))), ITSELF)
    assert changes_of(["1.2=query<value 0,value 0<key 0/itself"]) == {(1, 2): paths}
    assert changes_of(["1.2=previous"]) == {(1, 2): Mechanism(rest=PREVIOUS)}
    # Earlier words for the same.
    assert changes_of(["3.0=identity"]) == changes_of(["3.0=itself"])
    assert changes_of(["1.2=query>value 0,value 0>key 0/identity"]) == {(1, 2): paths}


def test_one_row_leaves_the_others_as_they_are() -> None:
    one = {(1, 0): Mechanism(((QUERY, UNIFORM),), AS_IS)}
    assert changes_of(["1.0:query=uniform"]) == one
    reads = {(1, 0): Mechanism(((QUERY, aim("own", VALUE)),), AS_IS)}
    assert changes_of(["1.0:query=value 0"]) == changes_of(["1.0:query=query<value 0"]) == reads
    both = {(1, 0): Mechanism(((QUERY, UNIFORM), (VALUE, ITSELF)), AS_IS)}
    assert changes_of(["1.0:query=uniform", "1.0:value 0=itself"]) == both
    done = {(1, 0): Mechanism(((VALUE, aim("own", KEY)),))}
    on_top = {(1, 0): Mechanism(((VALUE, aim("own", KEY)), (QUERY, ITSELF)))}
    assert changes_of(["1.0:query=itself"], done) == on_top


def test_a_row_switched_off_by_hand_is_the_same() -> None:
    """The planted model's second head answers for the query alone: without its row, all is lost."""
    made = planted(Retrieval(hops=2, chains=2, dim=6, symbols="one-hot"))
    exam = exam_of(made.task, 8)
    ablator = Ablator(subject_of(made.model), exam)
    texts = ["2.0:query=uniform", "2.0:key 0=uniform"]
    found = ablator.losses([Ablation.of(changes_of([text])) for text in texts]).mean(1)

    def edit(layer: int, pattern: torch.Tensor) -> torch.Tensor:
        if layer != 2:
            return pattern
        seen = torch.ones_like(pattern).tril()
        rows = exam.positions(QUERY).bool()[:, None, :, None]
        return torch.where(rows, seen / seen.sum(-1, keepdim=True), pattern)

    with torch.no_grad():
        outputs = made.model(exam.inputs, attention=edit, read=exam.length)
        by_hand = exam.marks(outputs).mean(0)
    torch.testing.assert_close(found[0], by_hand)
    assert float(by_hand.mean()) > 0.01
    assert float(found[1].mean()) < 1e-6


@pytest.mark.parametrize("text", ["3=uniform", "3.0", "x.0=mean", "3.0:=mean", "٣.0=mean", ""])
def test_what_names_no_head_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected LAYER\.HEAD=WHAT, e\.g\. 3\.0=uniform, or LA"):
        changes_of([text])


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(ConfigError, match="WHAT is uniform, itself, previous, position, mean"):
        changes_of(["3.0=flat"])
    with pytest.raises(FactError, match="there is no role '0 valve'"):
        changes_of(["3.0=query<0 valve"])
    with pytest.raises(FactError, match="there is no role '0 valve'"):
        changes_of(["3.0:0 valve=uniform"])
    with pytest.raises(ConfigError, match="mean and resample replace what a whole head carries"):
        changes_of(["3.0:query=value"])
    with pytest.raises(ConfigError, match="is of the row query, and names value 0"):
        changes_of(["3.0:query=value 0<key 0"])
    with pytest.raises(ConfigError, match="what the head carries is replaced already"):
        changes_of(["3.0:query=itself"], {(3, 0): Carried("mean")})


@pytest.mark.parametrize(
    "texts",
    [
        ("1.0=uniform", "1.0=mean"),
        ("1.0=uniform", "1.0:query=itself"),
        ("1.0:query=itself", "1.0=uniform"),
        ("1.0:query=itself", "1.0:query=uniform"),
    ],
)
def test_what_is_said_twice_is_refused(texts: tuple[str, str]) -> None:
    with pytest.raises(
        ConfigError, match=r"head 1\.0 is given twice \(.*\); say what it does once"
    ):
        changes_of(texts)
