"""The buttons under the losses."""

from typing import Any

from tests.browser.lookers import opened, settled

SAID = """async () => {
  const press = (text) =>
    [...document.querySelectorAll(".tray button")].find((its) => its.textContent === text).click();
  const next = () => new Promise(requestAnimationFrame);
  const frame = () => next().then(next);
  const said = () => [...document.querySelectorAll(".tray > .row:last-child button")]
    .slice(0, 2)
    .map((its) => its.textContent);
  press("at every step");
  press("what each costs");
  await frame();
  const both = said();
  press("stop");
  await frame();
  return [both, said(), hopscope.state.working];
}"""


def test_each_of_two_streams_has_its_own_stop(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=0.2;2.2;1.1")
    both, one, working = page.evaluate(SAID)
    assert both == ["stop", "stop"]
    assert one == ["at every step", "stop"]
    assert working == "costs"
    page.wait_for_function("() => hopscope.state.costs?.length > 12 && !hopscope.state.working")
    settled(page)


def test_a_row_is_offered_what_a_row_can_do(page: Any, explorer: str) -> None:
    opened(page, explorer, "/run/gallery-demo?off=0.2;2.0:query")
    offered = page.evaluate("""() => [...document.querySelectorAll(".tray li select")]
      .map((its) => [...its.options].map((one) => one.value))""")
    assert [ways.count("mean") + ways.count("resample") for ways in offered] == [2, 0]
    assert offered[1] == ["uniform", "itself", "previous", "position"]
