"""The numbers by which discovery decides: how they are derived, changed and compared."""

from hopscope.configs import Discovery


def test_batches_and_sketch_are_shares_of_the_examples() -> None:
    assert (Discovery(examples=128).batch, Discovery(examples=128).few) == (16, 32)
    assert (Discovery(examples=1).batch, Discovery(examples=1).few) == (1, 1)


def test_differences_name_both_values() -> None:
    other = Discovery(needed=4, examples=64)
    assert Discovery().differences(other) == "examples 128 (64), needed 3 (4)"
    assert Discovery().differences(Discovery()) == ""
    assert Discovery().changed(needed=4.0, examples=64) == other
