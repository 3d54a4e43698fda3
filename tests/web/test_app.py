"""What every route answers, and how questions are read."""

import asyncio
import json
import re

import pytest
from asking import Answer, Ask, answered, ask_all, made
from attacks import good
from standin import RUN, SECRET, StandIn

from hopscope.errors import CircuitError
from hopscope.web.guard import Limits

OF_RUN = f"/api/runs/{RUN}"


def asked(*asks: Ask, views: StandIn | None = None, **changed: object) -> list[Answer]:
    explorer = made(views or StandIn(), **changed)
    try:
        return ask_all(explorer.app, list(asks))
    finally:
        explorer.end()


def post(what: str, **question: object) -> Ask:
    return Ask("POST", f"{OF_RUN}/{what}".encode(), body=json.dumps(question).encode())


def get(path: str, query: str = "") -> Ask:
    return Ask("GET", path.encode(), query.encode())


@pytest.mark.parametrize(
    ("ask", "said"),
    [
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
    ],
)  # fmt: skip
def test_every_route_asks_its_question(ask: Ask, said: str) -> None:
    views = StandIn()
    (answer,) = asked(ask, views=views)
    assert answer.status == 200
    assert views.asked == [said]
    if answer.headers["content-type"] == "application/json":
        assert ask.method == "PUT" or answer.json()["data"] == SECRET
    else:
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.body == SECRET.encode()


def test_numbers_that_are_none_are_null() -> None:
    (answer,) = asked(get("/api/runs"))
    assert answer.json()["nan"] is None


def lines(answer: Answer) -> list[dict[str, object]]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.body.endswith(b"\n")
    return [json.loads(line) for line in answer.body.decode().split("\n")[:-1]]


def test_a_stream_is_a_line_for_each_answer_whatever_stands_in_it() -> None:
    steps, costs = asked(post("over-time"), post("costs"))
    assert [line["asked"] for line in lines(steps)] == [["over_time", str(n)] for n in range(3)]
    assert [line["asked"] for line in lines(costs)] == [["costs", RUN, "\n{}\u2028"]]


def test_an_error_in_a_stream_is_its_last_line() -> None:
    views = StandIn()
    views.error = CircuitError("no head 9.9 in /home/somebody/x")
    (answer,) = asked(post("over-time"), views=views)
    *_, last = lines(answer)
    assert last == {"error": "no head 9.9 in x", "status": 422}


def test_a_mistake_in_a_stream_is_its_last_line_and_told_in_the_terminal() -> None:
    views, notes = StandIn(), list[str]()
    views.error = ZeroDivisionError("in /home/somebody")
    explorer = made(views, notes)
    with pytest.raises(Exception, match="a mistake of hopscope"):  # the connection ends
        ask_all(explorer.app, [post("over-time")])
    explorer.end()
    assert "ZeroDivisionError" in "\n".join(notes)


def test_an_error_before_the_first_line_has_a_status() -> None:
    ask = Ask("POST", b"/api/runs/0123456789/costs")
    (answer,) = asked(ask)
    assert (answer.status, answer.json()["error"]) == (404, "there is no such run")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"{", b'{"examples": 0}', b'{"examples": 4097}', b'{"examples": 1e9}',
        b'{"examples": -1}', b'{"examples": "8"}', b'{"examples": true}', b'{"step": 1e400}',
        b'{"seed": -1}', b'{"sample": 99999999999999999999}', b'{"none": 1}', b'{"changes": "x"}',
        b'{"changes": [1]}', b'{"changes": ["' + b"x" * 10_000 + b'"]}', b'{"examples": [8]}',
        b'{"changes": [' + b'"0.0=uniform",' * 10_000 + b'"0.0=uniform"]}', b'{"examples": NaN}',
        b'{"examples": 8, "examples": 9}', b'{"changes": ["\\ud800"]}', b'{"__proto__": {}}',
    ],
)  # fmt: skip
def test_what_is_no_question_is_not_asked(body: bytes) -> None:
    views = StandIn()
    asks = [
        Ask("POST", f"{OF_RUN}/{what}".encode(), body=body)
        for what in ("ablate", "over-time", "costs")
    ]
    for answer in asked(*asks, views=views):
        assert answer.refused
        assert answer.status in (400, 422)
        assert len(answer.body) < 1_000
    assert views.asked == []


def test_without_strict_reading_one_would_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = Ask("PUT", f"{OF_RUN}/views/mine".encode(), body=b'{"a": 1, "a": 2}')
    assert asked(ask)[0].status == 400
    monkeypatch.setattr("hopscope.web.app.read_json", json.loads)
    assert asked(ask)[0].status == 200


@pytest.mark.parametrize("form", ["ID", "VIEW"])
def test_without_the_form_of_a_name_others_would_be_looked_up(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "x" * 101
    paths = {"ID": f"/api/runs/{RUN}/arrays/{name}", "VIEW": f"{OF_RUN}/views/{name}"}
    ask = Ask("GET" if form == "ID" else "PUT", paths[form].encode())
    assert asked(ask)[0].status == 404
    monkeypatch.setattr(f"hopscope.web.app.{form}", re.compile(".*"))
    monkeypatch.setattr("hopscope.web.app._named.__defaults__", ("id", re.compile(".*")))
    assert asked(ask)[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/api/runs/0123456789", "/api/runs/gallery", "/api/runs/gallery-demo2",
        "/api/runs/GALLERY-DEMO",
        "/api/runs/%20", "/api/runs/" + "x" * 5_000, "/api/runs/gallery-demo/arrays",
        "/api/runs/gallery-demo/nothing", "/api/runs/gallery%20demo", "/api", "/nothing",
        "/api/runs/~",
    ],
)  # fmt: skip
def test_another_id_leads_nowhere(path: str) -> None:
    views = StandIn()
    (answer,) = asked(get(path), views=views)
    assert answer.refused
    assert answer.status == 404
    assert views.asked == []


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/api/runs", "since=" + "x" * 101), ("/api/runs", "since=a&since=b"), ("/api/runs", "x=1"),
        ("/api/runs", "since=a%0ab"), (OF_RUN, "seed="), (OF_RUN, "seed=-1"), (OF_RUN, "seed=1e3"),
        (OF_RUN, "seed=%EF%BC%91"), (OF_RUN, "seed=1&seed=2"), (OF_RUN, "seed=99999999999"),
    ],
)  # fmt: skip
def test_another_query_is_refused(path: str, query: str) -> None:
    views = StandIn()
    (answer,) = asked(get(path, query), views=views)
    assert answer.refused
    assert answer.status == 400
    assert views.asked == []


def test_a_page_that_is_read_only_has_no_way_to_keep() -> None:
    ask = Ask("PUT", f"{OF_RUN}/views/mine".encode())
    views = StandIn()
    (answer,) = asked(ask, views=views, read_only=True)
    assert answer.refused
    assert answer.status == 404
    assert views.asked == []


def test_the_other_method_is_refused() -> None:
    explorer = made()
    asks = good(list(explorer.routes))
    other = [ask.but(method="POST" if ask.method == "GET" else "GET") for ask in asks]
    answers = ask_all(explorer.app, other)
    explorer.end()
    assert {answer.status for answer in answers} == {405}
    assert all(answer.refused for answer in answers)


def test_fifty_heavy_questions_at_once() -> None:
    views = StandIn()
    views.slow = 0.01
    explorer = made(views, limits=Limits(waiting=8))

    async def at_once() -> tuple[list[Answer], float]:
        heavy = asyncio.gather(*(answered(explorer.app, post("ablate")) for _ in range(50)))
        await asyncio.sleep(0)
        begun = asyncio.get_running_loop().time()
        light = await answered(explorer.app, get("/api/runs"))
        assert light.status == 200
        return await heavy, asyncio.get_running_loop().time() - begun

    answers, _ = asyncio.run(at_once())
    explorer.end()
    assert sorted({answer.status for answer in answers}) == [200, 503]
    assert sum(answer.status == 200 for answer in answers) == 8
    assert views.most == 1


def test_without_that_limit_all_would_be_computed() -> None:
    views = StandIn()
    explorer = made(views, limits=Limits(waiting=1_000))

    async def at_once() -> list[Answer]:
        return await asyncio.gather(*(answered(explorer.app, post("ablate")) for _ in range(50)))

    statuses = {answer.status for answer in asyncio.run(at_once())}
    explorer.end()
    assert statuses == {200}


def test_past_its_deadline_a_question_ends() -> None:
    views = StandIn()
    views.slow = 30
    answers = asked(post("ablate"), post("over-time"), views=views, limits=Limits(computing=0.05))
    assert [answer.status for answer in answers] == [503, 503]
    assert views.stopped == 2
