"""Every attack on every route, by every method; without any one guard, some would be answered."""

import pytest
from asking import HOST, TOKEN, Answer, Ask, asked
from attacks import GROUPS, METHODS, ROUTED, good, of_group
from standin import SECRET, StandIn

from hopscope.web.address import Origin
from hopscope.web.policy import GUARDS, Policy


def tried(
    group: str, views: StandIn, known: bool = False, **changed: object
) -> list[tuple[Ask, Answer]]:
    """All attacks of a group (or those by ways that are known), and what was answered."""
    asks = of_group(group)
    if known:
        ways = {(ask.method, ask.path) for ask in good(ROUTED)}
        asks = [ask for ask in asks if (ask.method, ask.path) in ways]
    return list(zip(asks, asked(*asks, views=views, **changed), strict=True))


@pytest.mark.parametrize("group", GROUPS)
def test_every_attack_is_refused(group: str) -> None:
    views = StandIn()
    found = tried(group, views)
    assert TOKEN not in repr(Policy(TOKEN))  # nor is it in a traceback
    assert len(found) >= 90
    for ask, answer in found:
        assert answer.refused, (ask, answer)
        assert answer.status in GROUPS[group].statuses, (ask, answer)
    assert len({answer.body for _, answer in found}) <= 3  # constant: nothing of the request in it
    assert views.asked == []
    if group == "host":  # on every route, by every method
        assert {ask.path for ask in good(ROUTED)} <= {ask.path for ask, _ in found}
        assert {ask.method for ask, _ in found} == set(METHODS)


@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_some_attacks_are_answered(guard: str) -> None:
    views = StandIn()
    less = {name: each for name, each in GUARDS.items() if name != guard}
    found = tried(guard, views, guard != "path", guards=less)
    served = [ask for ask, answer in found if answer.status < 400]
    assert served
    assert views.asked


LOCAL = (
    b"127.0.0.1:8384", b"localhost", b"LOCALHOST:9000", b"localhost:1", b"127.200.3.4:65535",
    b"[::1]", b"[::1]:8384",
)  # fmt: skip


def test_names_of_this_machine_are_answered_at_any_port() -> None:
    """A port may be forwarded: the browser then names the port at its own end."""
    site = (b"sec-fetch-site", b"same-origin")
    asks = [
        Ask(host=(host,), more=((b"origin", b"http://" + host.lower()), site)) for host in LOCAL
    ]
    for answer in asked(*asks, Ask(host=(b"[0:0:0:0:0:0:0:1]:80",))):
        assert answer.status == 200
        assert SECRET.encode() in answer.body  # or no attack could be seen to succeed


def test_a_trusted_origin_is_answered_under_its_own_name_alone() -> None:
    trusted = (Origin.read("https://lab.example"), Origin.read("http://10.1.2.3:8384"))
    asks = [
        Ask(host=(b"lab.example",)),
        Ask(host=(b"lab.example",), more=((b"origin", b"https://lab.example"),)),
        Ask(host=(b"Lab.Example:443",)),
        Ask(host=(b"10.1.2.3:8384",), more=((b"origin", b"http://10.1.2.3:8384"),)),
        Ask(host=(b"127.0.0.1",)),
        Ask(host=(b"lab.example:8384",)),
        Ask(host=(b"lab.example",), more=((b"origin", b"http://lab.example"),)),
        Ask(host=(b"lab.example",), more=((b"origin", b"http://10.1.2.3:8384"),)),
        Ask(host=(b"10.1.2.3",)),
        Ask(host=(b"x.lab.example",)),
        Ask(host=(HOST,), more=((b"origin", b"https://lab.example"),)),
    ]
    statuses = [answer.status for answer in asked(*asks, trusted=trusted)]
    assert statuses == [200] * 5 + [403] * 6


def test_a_link_from_elsewhere_leads_to_the_page_and_no_further() -> None:
    visit = (
        (b"sec-fetch-site", b"cross-site"),
        (b"sec-fetch-mode", b"navigate"),
        (b"sec-fetch-dest", b"document"),
    )
    page, data, posted = asked(
        Ask(path=b"/", token=(), more=visit), Ask(more=visit), Ask("POST", b"/", more=visit)
    )
    assert (page.status, data.status, posted.status) == (200, 403, 403)
