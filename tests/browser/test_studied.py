"""A model from elsewhere on the page: served, and saved."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asking import TOKEN
from served import served

from hopscope import Study
from hopscope.store import Store
from hopscope.web.bundle import write_page
from hopscope.web.questions import AblateQuestion
from hopscope.web.studied import Studied
from hopscope.web.views import Views
from tests.browser.lookers import bars, check_for_everybody, measured, opened, pressed, ready
from tests.circuits import induction

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(induction.adapter(20.0), induction.TASK, name="by hand")


@pytest.fixture(scope="module")
def views(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Views:
    circuit = study.discover(examples=64)
    root = tmp_path_factory.mktemp("none") / "runs"
    views = Views(Store(root), study=lambda memory: Studied(study, circuit, memory))
    assert views.study is not None
    views.study.counts = [256, 1024]  # on a busy machine it may find fewer,
    views.shown("study").arrays("contents")  # and squares may take longer than an answer may
    asked = AblateQuestion(changes=("0.0=uniform",), examples=8, probe=True)
    views.shown("study").ablate(asked, lambda: False)
    return views


@pytest.fixture(scope="module")
def site(views: Views) -> Iterator[str]:
    with served(views) as running:
        yield f"http://127.0.0.1:{running.port}"
    assert running.notes == []


def test_a_click_gives_the_losses_of_the_study(page: Any, site: str, study: Study) -> None:
    opened(page, site, "/run/study")
    assert page.inner_text(".verdict").startswith("Explained")
    assert page.inner_text(".time .body").startswith("This model comes from elsewhere")
    assert not page.is_visible(".slider")
    assert "11 of 11 right" in page.inner_text(".answers")
    (usual,) = measured(page)
    page.click(".chip[data-item='0.0']")
    (without,) = measured(page)
    wanted = study.ablate("0.0=uniform", examples=1024)
    assert usual == pytest.approx(wanted.model[0], rel=1e-6)
    assert without == pytest.approx(wanted.rows[0].losses[0], rel=1e-6)
    assert "0 of 11 right" in page.inner_text(".answers")
    assert page.inner_text(".whose").startswith("Squares: the changed model")
    lines = page.get_attribute(".losses .foot .python code", "title")
    found = eval(lines, {"study": study})  # as it is copied
    assert found.rows[0].losses[0] == pytest.approx(without, rel=1e-6)
    assert pressed(page, "u", "n")["ex"] == "1"
    page.dblclick(".token >> nth=2")  # cannot be typed
    assert page.locator(".token input").count() == 0


def test_nobody_is_left_out(page: Any, site: str) -> None:
    opened(page, site, "/run/study?off=0.0")
    check_for_everybody(page, 400, 1280, 2560)


def test_what_the_address_asks_for_and_a_study_has_not(page: Any, site: str) -> None:
    opened(page, site, "/run/study?order=5&tokens=1+2&off=7.0&step=3")
    told = page.inner_text(".error")
    assert all(part in told for part in ("order=5", "tokens", "off=7.0", "step=3"))


def test_the_saved_page_switches_off_one_thing_at_a_time(
    page: Any, views: Views, study: Study, tmp_path: Path
) -> None:
    page.goto(write_page(views, "study", tmp_path / "study.html").as_uri())
    ready(page)
    page.click(".chip[data-item='0.0']")
    (without,) = bars(page)
    wanted = study.ablate("0.0=uniform", examples=256).rows[0].losses[0]
    assert without == pytest.approx(wanted, rel=1e-5)
    page.click(".chip[data-item='1.0']")
    ready(page)
    told = page.inner_text(".error")
    assert "this page cannot compute this model" in told
    assert "one head or path at a time can be made uniform; `hopscope view` computes" in told
    assert TOKEN not in page.content()
