"""A view is kept beside its run under a name, and chosen again as often as somebody likes."""

from pathlib import Path
from typing import Any

from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import Store
from tests.browser.lookers import SOON, TOKEN, served

CHOSEN = "() => location.hash.includes('ex=3')"


def test_a_view_is_kept_and_chosen_twice(page: Any, tmp_path: Path, complaints: list[str]) -> None:
    training = Training(steps=12, batch=8, examples=64, checkpoint_every=5, precision="float32")
    model = Model(layers=2, heads=2, d_model=16)
    run = Store(tmp_path).create(Experiment(task=Retrieval(hops=2), model=model, training=training))
    names = iter(["a/b", "one view"])
    page.on("dialog", lambda dialog: dialog.accept(next(names)))
    id_ = run.name.rpartition("-")[2]
    with served(tmp_path) as site:
        page.goto(f"{site}/#token={TOKEN}&/run/{id_}?ex=3")
        page.wait_for_function("() => globalThis.hopscope?.state.about", timeout=SOON)
        page.click("text=keep")
        page.wait_for_selector(".error:visible")
        said = page.inner_text(".error span")
        assert said.startswith("the view is called 'a/b'; expected up to 60 letters, digits")
        # The list of runs came later than the run: it is opened again, and the line stays.
        page.evaluate("async () => { await hopscope.live.openRun(); }")
        page.wait_for_function("() => !hopscope.state.opening && !hopscope.state.waiting")
        assert page.inner_text(".error span") == said
        page.click("text=keep")
        page.wait_for_selector('[aria-label="Kept views"]')
        page.wait_for_selector(".error", state="hidden")
        for _ in range(2):
            page.keyboard.press("n")
            page.wait_for_function("() => location.hash.includes('ex=4')")
            page.select_option('[aria-label="Kept views"]', "one view")
            page.wait_for_function(CHOSEN)
            assert page.input_value('[aria-label="Kept views"]') == ""
        page.goto("about:blank")  # asks nothing more of a server that ends
    assert complaints == []
