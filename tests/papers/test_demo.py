"""The demo's preset: small, and each of its choices says why."""

from hopscope.papers import demo


def test_sources_name_fields_that_exist_and_are_ours() -> None:
    made = demo.preset()
    assert set(made.sources) <= set(made.recipe.named())
    assert all(reason.startswith("ours: ") for reason in made.sources.values())


def test_it_is_the_run_that_comes_with_hopscope() -> None:
    """Whoever changes it builds the gallery anew."""
    assert demo.preset().recipe.run_name() == "retrieval-d2-l3h4-4e9b70a72b"
