"""The card of a run, beside what the run keeps."""

from hopscope.configs import read_recipe
from hopscope.sharing.card import FIGURE, card
from hopscope.store import RunFolder
from hopscope.store.gallery import find
from hopscope.store.metrics import losses


def page(folder: RunFolder) -> str:
    return card(folder, "me/mine", "mit")["README.md"].decode()


def test_a_card_tells_losses_seed_by_seed_and_makes_the_run_again(fleet: RunFolder) -> None:
    text = page(fleet)
    _, found = losses(fleet, "validation")
    for seed, own in zip((3, 5), found[-1], strict=True):
        assert f"| {seed} | {own[0]:.4g} | {own[1]:.4g} |" in text
    assert FIGURE not in text
    assert read_recipe(text.partition("```json\n")[2].partition("```")[0]) == fleet.recipe
    assert f'hopscope.load("{fleet.name}")' in text
    assert text.startswith("---\nlibrary_name: hopscope\nlicense: mit\n")


def test_cards_say_what_a_run_has_and_what_it_lacks(demo: RunFolder, empty: RunFolder) -> None:
    files = card(demo, "me/mine", "mit")
    assert files[FIGURE].startswith(b"\x89PNG")
    text = files["README.md"].decode()
    assert f"![circuit]({FIGURE})" in text
    assert 'hopscope.load("me--mine")' in text
    assert "## Validation loss after epoch" in page(find("ngram"))
    assert "Not complete: it stands at step 0 of 6; `hopscope resume` goes on" in page(empty)
    assert "## Validation" not in page(empty)
