"""What every route answers, and how questions are read."""

import asyncio
import json
from typing import Any

import pytest
from asking import Answer, Ask, answered, asked, made
from attacks import ROUTED, good
from standin import RUN, SECRET, StandIn

from hopscope.errors import CircuitError
from hopscope.web.guard import Limits

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
    (get(f"{OF_RUN}/arrays/maps", "seed=0"), f"arrays {RUN} maps 0"),
    (post("example", index=17), f"example {RUN} 17"),
    (post("ablate", examples=32, changes=["1.0=uniform"]), "ablate 32"),
    (get(f"{OF_RUN}/views"), f"views {RUN}"),
    (Ask("PUT", f"{OF_RUN}/views/My%20view".encode(), body=b'{"a": [1]}'),
     f"keep {RUN} My view {{'a': [1]}}"),
)  # fmt: skip


def test_every_route_asks_its_question() -> None:
    """A number that is none is null."""
    for ask, said in ROUTES:
        views = StandIn()
        (answer,) = asked(ask, views=views)
        assert (answer.status, views.asked) == (200, [said])
        if answer.headers["content-type"] == "application/octet-stream":
            assert answer.body == SECRET.encode()
        elif ask.method != "PUT":
            told = answer.json()
            assert (told["data"], told["nan"]) == (SECRET, None)


def lines(answer: Answer) -> list[dict[str, object]]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.body.endswith(b"\n")
    return [json.loads(line) for line in answer.body.decode().split("\n")[:-1]]


def test_a_stream_is_a_line_for_each_answer_whatever_stands_in_it() -> None:
    """An error is its last line; one before the first line has a status."""
    steps, costs, none = asked(
        post("over-time"), post("costs"), Ask("POST", b"/api/runs/0123456789/costs")
    )
    assert [line["asked"] for line in lines(steps)] == [["over_time", str(n)] for n in range(3)]
    assert [line["asked"] for line in lines(costs)] == [["costs", RUN, "\n{}\u2028"]]
    assert (none.status, none.json()["error"]) == (404, "there is no such run")
    views = StandIn()
    views.error = CircuitError("no head 9.9 in /home/somebody/x")
    (answer,) = asked(post("over-time"), views=views)
    assert lines(answer)[-1] == {"error": "no head 9.9 in x", "status": 422}


def test_a_mistake_in_a_stream_is_its_last_line_and_told_in_the_terminal() -> None:
    views, notes = StandIn(), list[str]()
    views.error = ZeroDivisionError("in /home/somebody")
    with pytest.raises(Exception, match="a mistake of hopscope"):  # the connection ends
        asked(post("over-time"), views=views, notes=notes)
    assert "ZeroDivisionError" in "\n".join(notes)


def test_what_is_no_question_is_not_asked() -> None:
    """How JSON is read, and what a question may hold, is decided in `test_questions`."""
    views = StandIn()
    what = ("example", "ablate", "over-time", "costs")
    bodies = (b"", b'{"seed": -1}', b'{"step": 1, "step": 2}')
    asks = [Ask("POST", f"{OF_RUN}/{each}".encode(), body=body) for each in what for body in bodies]
    for answer in asked(*asks, Ask("PUT", f"{OF_RUN}/views/x".encode(), body=b"[]"), views=views):
        assert answer.refused
        assert answer.status in (400, 422)
        assert len(answer.body) < 1_000
    assert views.asked == []


NOWHERE = (
    "/api/runs/0123456789", "/api/runs/gallery", "/api/runs/gallery-demo2",
    "/api/runs/GALLERY-DEMO", "/api/runs/%20", "/api/runs/" + "x" * 5_000, "/api", "/nothing",
    "/api/runs/gallery-demo/arrays", "/api/runs/gallery-demo/nothing", "/api/runs/gallery%20demo",
    "/api/runs/~", f"{OF_RUN}/arrays/{'x' * 101}",
)  # fmt: skip
QUERIES = (
    ("/api/runs", "since=" + "x" * 101), ("/api/runs", "since=a&since=b"), ("/api/runs", "x=1"),
    ("/api/runs", "since=a%0ab"), (OF_RUN, "seed="), (OF_RUN, "seed=-1"), (OF_RUN, "seed=1e3"),
    (OF_RUN, "seed=%EF%BC%91"), (OF_RUN, "seed=1&seed=2"), (OF_RUN, "seed=99999999999"),
)  # fmt: skip


def test_another_id_leads_nowhere_and_another_query_is_refused() -> None:
    """Nor is there a way to keep where all is read-only."""
    views = StandIn()
    (answer,) = asked(Ask("PUT", f"{OF_RUN}/views/mine".encode()), views=views, read_only=True)
    assert (answer.refused, answer.status) == (True, 404)
    keep = Ask("PUT", f"{OF_RUN}/views/{'x' * 101}".encode())
    asks = [keep, *map(get, NOWHERE), *(get(*each) for each in QUERIES)]
    for ask, answer in zip(asks, asked(*asks, views=views), strict=True):
        assert answer.refused, ask.path
        assert answer.status == (400 if ask.query else 404), (ask.path, ask.query)
    assert views.asked == []


def test_the_other_method_is_refused() -> None:
    other = [ask.but(method="POST" if ask.method == "GET" else "GET") for ask in good(ROUTED)]
    answers = asked(*other)
    assert {(answer.status, answer.refused) for answer in answers} == {(405, True)}


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
        statuses = [answer.status for answer in asyncio.run(at_once(explorer.app))]
        explorer.end()
        assert (statuses.count(200), statuses.count(503)) == (fine, 50 - fine)
        assert views.most == 1


def test_past_its_deadline_a_question_ends() -> None:
    views = StandIn()
    views.slow = 30
    answers = asked(post("ablate"), post("over-time"), views=views, limits=Limits(computing=0.05))
    assert [answer.status for answer in answers] == [503, 503]
    assert views.stopped == 2
