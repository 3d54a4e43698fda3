"""What every route answers, what it refuses, and what becomes of mistakes."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

from asking import TOKEN, Answer, Ask, answered, ask_all, asked, made
from attacks import ROUTED, good
from standin import RUN, SECRET, StandIn

from hopscope import errors
from hopscope.web.app import QUERY, Limits
from hopscope.web.page import page_files

OF_RUN = f"/api/runs/{RUN}"


def post(what: str, **question: object) -> Ask:
    return Ask("POST", f"{OF_RUN}/{what}".encode(), body=json.dumps(question).encode())


def get(path: str, query: str = "") -> Ask:
    return Ask("GET", path.encode(), query.encode())


ROUTES = (
    (get("/api/runs"), "runs "),
    (get("/api/runs", "since=ab.12"), "runs ab.12"),
    (get(OF_RUN), f"run {RUN} None"),
    (get(OF_RUN, "seed=3"), f"run {RUN} 3"),
    (get(f"{OF_RUN}/arrays/maps", "seed=0"), f"arrays {RUN} maps 0 None"),
    (get(f"{OF_RUN}/arrays/contents", "step=40&seed=3"), f"arrays {RUN} contents 3 40"),
    (post("example", index=17), f"example {RUN} 17"),
    (post("ablate", examples=32, changes=["1.0=uniform"]), "ablate 32"),
    (get(f"{OF_RUN}/views"), f"views {RUN}"),
    (Ask("PUT", f"{OF_RUN}/views/My%20view".encode(), body=b'{"a": [1]}'),
     f"keep {RUN} My view {{'a': [1]}}"),
    (Ask("DELETE", f"{OF_RUN}/views/mine".encode()), f"keep {RUN} mine None"),
)  # fmt: skip


def test_every_route_asks_its_question() -> None:
    """A number that is none is null."""
    for ask, said in ROUTES:
        views = StandIn()
        (answer,) = asked(ask, views=views)
        assert (answer.status, views.asked) == (200, [said])
        if answer.headers["content-type"] == "application/octet-stream":
            assert answer.body == SECRET.encode()
        elif ask.method in ("GET", "POST"):
            told = answer.json()
            assert (told["data"], told["nan"]) == (SECRET, None)


def test_the_page_is_what_its_html_names() -> None:
    """It is public; nothing else is there, and it is asked for by GET alone."""
    files = page_files()
    assert {*files} == {"/", "/page.js", "/page.css", "/panes.css", "/colours.css", "/icon.svg"}
    answers = asked(*(Ask(path=path.encode(), token=()) for path in files))
    for (kind, read), answer in zip(files.values(), answers, strict=True):
        assert (answer.status, answer.body) == (200, read())
        assert answer.headers["content-type"] == kind
        assert TOKEN.encode() not in answer.body
    others = [Ask(path=b"/main.js"), Ask(path=b"/index.html"), Ask("POST", b"/", token=())]
    assert [answer.status for answer in asked(*others)] == [404, 404, 405]


def lines(answer: Answer) -> list[dict[str, object]]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.body.endswith(b"\n")
    assert b"NaN" not in answer.body
    return [json.loads(line) for line in answer.body.decode().split("\n")[:-1]]


def test_a_stream_is_a_line_for_each_answer_whatever_stands_in_it() -> None:
    """An error is its last line; one before the first line has a status."""
    steps, costs, none = asked(
        post("over-time"), post("costs"), Ask("POST", b"/api/runs/0123456789/costs")
    )
    assert [line["asked"] for line in lines(steps)] == [["over_time", str(n)] for n in range(3)]
    assert [line["asked"] for line in lines(costs)] == [["costs", RUN, "\n{}\u2028"]]
    assert (none.status, none.json()["error"]) == (404, "there is no such run")
    views, notes = StandIn(), list[str]()
    views.error = errors.CircuitError("no head 9.9 in /home/somebody/x")
    (answer,) = asked(post("over-time"), views=views)
    assert lines(answer)[-1] == {"error": "no head 9.9 in x", "status": 422}
    views.error = ZeroDivisionError("in /home/somebody")
    (answer,) = asked(post("over-time"), views=views, notes=notes)
    told = {"error": "an internal error of hopscope: see error 1 in its terminal", "status": 500}
    assert (len(lines(answer)), lines(answer)[-1]) == (4, told)
    assert "ZeroDivisionError" in "\n".join(notes)


IDS = ("0123456789", "gallery-demo2", "GALLERY-DEMO", "gallery%20demo", "%20", "~", "x" * 5_000)
NO_NUMBERS = ("", "-1", "1e3", "%EF%BC%91", "99999999999")
NO_CURSORS = ("x" * 101, "a%0ab", "%EF%BC%91")


def nowhere() -> Iterator[Ask]:
    """Beside every route, and of runs that are not there."""
    for ask in good(ROUTED):
        yield ask.but(path=ask.path + b"/nothing")
        if RUN.encode() in ask.path:
            yield from (ask.but(path=ask.path.replace(RUN.encode(), id_.encode())) for id_ in IDS)


def queries() -> Iterator[Ask]:
    """What is no query of each route: a name that it has not, twice, or with no such value."""
    for route, ask in zip(ROUTED, good(ROUTED), strict=True):
        other = [f"{name}=1" for name in (*QUERY, "x") if name not in route.query]
        for name in route.query:
            bad = NO_CURSORS if name == "since" else NO_NUMBERS
            other += [name, f"{name}=1&{name}=1", f"{name}=1&x=1", *(f"{name}={b}" for b in bad)]
        if ask.path != b"/":  # the page is the same, whatever is asked of it
            yield from (ask.but(query=query.encode()) for query in (*other, "&"))


def test_what_is_no_question_is_not_asked() -> None:
    """How bodies are read is decided in `test_questions`. Where all is read-only, none is kept."""
    views = StandIn()
    writing = [Ask(method, f"{OF_RUN}/views/mine".encode()) for method in ("PUT", "DELETE")]
    for answer in asked(*writing, views=views, read_only=True):
        assert (answer.refused, answer.status) == (True, 404)
    bad = [ask.but(body=b"[]") for ask in good(ROUTED) if ask.method in ("POST", "PUT")]
    bad += [ask.but(body=b'{"seed": -1}') for ask in good(ROUTED) if ask.method == "POST"]
    other = [ask.but(method="POST" if ask.method == "GET" else "GET") for ask in good(ROUTED)]
    for asks, statuses in (
        (bad, (400, 422)), (other, (405,)), ([*nowhere()], (404, 405)), ([*queries()], (400,)),
    ):  # fmt: skip
        for ask, answer in zip(asks, asked(*asks, views=views), strict=True):
            assert (answer.refused, answer.status in statuses) == (True, True), (ask, answer)
            assert len(answer.body) < 1_000
    assert views.asked == []


def test_fifty_heavy_questions_at_once() -> None:
    async def at_once(app: Any) -> list[Answer]:
        heavy = asyncio.gather(*(answered(app, post("ablate")) for _ in range(50)))
        await asyncio.sleep(0)
        assert (await answered(app, get("/api/runs"))).status == 200
        return await heavy

    for waiting, fine in ((8, 8), (1_000, 50)):  # without that limit all would be computed
        views = StandIn()
        views.slow = 0.01
        explorer = made(views, limits=Limits(waiting=waiting))
        statuses = [answer.status for answer in asyncio.run(at_once(explorer))]
        explorer.end()
        assert (statuses.count(200), statuses.count(503)) == (fine, 50 - fine)
        assert views.most == 1


def test_past_its_deadline_a_question_ends() -> None:
    for ask in (post("ablate"), post("over-time")):
        views = StandIn()
        views.slow = 30
        (answer,) = asked(ask, views=views, limits=Limits(computing=0.2))
        assert (answer.status, views.stopped) == (503, 1)


KEEP = Ask("PUT", f"/api/runs/{RUN}/views/mine".encode())
LONG = b'{"a": "' + b"x" * 256 * 1024 + b'"}'


def chunk(data: bytes) -> dict[str, Any]:
    return {"type": "http.request", "body": data, "more_body": True}


def test_a_body_is_short_however_its_length_is_told_and_comes_within_seconds() -> None:
    """Who leaves before all was sent is not answered."""
    views = StandIn()
    explorer = made(views, limits=Limits(sending=0.05))
    told = KEEP.but(more=((b"content-length", b"%d" % len(LONG)),), body=LONG)
    lied = KEEP.but(more=((b"content-length", b"2"),), body=LONG)
    answers = ask_all(explorer, [told, lied, told.but(more=((b"content-length", b"9" * 99),))])
    assert [answer.status for answer in answers] == [413] * 3
    long = [chunk(b'{"a": "'), *(chunk(b"x" * 60_000) for _ in range(10))]
    for sent, status, told in (
        (long, 413, b""),
        ([chunk(b"{")], 408, b"expected a request within 0.05 s"),
    ):
        answer = asyncio.run(answered(explorer, KEEP, sent))
        assert (answer.status, told in answer.body) == (status, True)
        assert answer.headers["connection"] == "close"  # what is still sent is not waited for
    assert asyncio.run(answered(explorer, KEEP, [{"type": "http.disconnect"}])).status == 0
    explorer.end()
    assert views.asked == []


STATUSES = {
    errors.RunMissing: 404, errors.RunReadOnly: 403, errors.RunBusy: 409, errors.RunDamaged: 409,
    errors.RunMismatch: 409, errors.StoreUnwritable: 507, errors.ConfigError: 422,
    errors.CircuitError: 422, errors.NotLearned: 422, errors.HopscopeError: 422,
}  # fmt: skip
TOLD = {
    "/home/me/runs/a-1/config.json is damaged": "config.json is damaged",
    "cannot read '/srv/x/y': no": "cannot read 'y': no",
    "[/a/b/c] and (/d/e)": "[c] and (e)",
    "paths like value 0>query/itself": "paths like value 0>query/itself",
    "gallery/demo has 1/2 of http://x/y": "gallery/demo has 1/2 of http://x/y",
}


class Mistaken(StandIn):
    def run(self, id_: str, seed: int | None = None) -> dict[str, Any]:
        raise self.error or ZeroDivisionError(f"in /home/somebody/secret with {TOKEN}")


def test_an_error_has_a_status_and_names_no_folder_and_a_mistake_is_told_as_a_number() -> None:
    views, notes = Mistaken(), list[str]()
    explorer = made(views, notes)
    mistakes = ask_all(explorer, [get(OF_RUN), get(OF_RUN)])
    explorer.end()
    for number, answer in enumerate(mistakes, 1):
        told = f"an internal error of hopscope: see error {number} in its terminal"
        assert (answer.status, answer.json()["error"]) == (500, told)
    assert notes[0] == "error 1 of this server, an internal error of hopscope:"
    assert "ZeroDivisionError" in "\n".join(notes)
    for kind, status in STATUSES.items():
        views.error = kind("x")
        assert asked(get(OF_RUN), views=views)[0].status == status
    for text, told in TOLD.items():
        views.error = errors.RunDamaged(text)
        assert asked(get(OF_RUN), views=views)[0].json()["error"] == told
