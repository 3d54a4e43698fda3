"""The numbers by which discovery decides: how they are derived, changed and compared."""

import pytest

from hopscope.configs import Discovery
from hopscope.errors import ConfigError


def test_batches_and_sketch_are_shares_of_the_examples() -> None:
    assert (Discovery(examples=128).batch, Discovery(examples=128).few) == (16, 32)
    assert (Discovery(examples=1).batch, Discovery(examples=1).few) == (1, 1)


def test_a_change_gives_another_config_and_is_checked() -> None:
    settings = Discovery()
    assert settings.changed(needed=4.0).needed == 4
    assert settings == Discovery()
    with pytest.raises(ConfigError, match="Discovery.needed: .* than or equal to 1, got 0.5"):
        settings.changed(needed=0.5)
    with pytest.raises(ConfigError, match="Discovery.neded: unknown field; did you mean needed"):
        settings.changed(neded=4)


def test_differences_name_both_values() -> None:
    other = Discovery(needed=4, examples=64)
    assert Discovery().differences(other) == "examples 128 (64), needed 3 (4)"
    assert Discovery().differences(Discovery()) == ""


def test_every_number_says_what_it_is() -> None:
    """A hover over any of them shows a sentence of its own."""
    assert set(Discovery.model_fields) <= set(documented())


def documented() -> list[str]:
    import ast
    import inspect

    (body,) = ast.parse(inspect.getsource(Discovery)).body
    assert isinstance(body, ast.ClassDef)
    pairs = zip(body.body, body.body[1:], strict=False)
    return [
        field.target.id
        for field, text in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
    ]
