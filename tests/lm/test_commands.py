"""`hopscope lm` and `hopscope lm list`, with a model of a few thousand weights in a folder."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import Patch, Say
from solving import find_circuit, stopped

from hopscope.configs import Asking, LmBench, LmCircuit, Prompts
from hopscope.errors import EndpointFailed
from hopscope.lm.drawing import CITIES, COUNTRIES, FIRST_NAMES
from hopscope.lm.model import LanguageModel
from hopscope.lm.results import WEIGHTS
from hopscope.store import RunFolder, Store

Both = Callable[[bool], LanguageModel]
SMALL = (
    "--model mine --template raw --questions 6 --formulations f1 --hops 1 --max-tokens 4".split()
)


@pytest.fixture
def say(root: Path, hopscope: Say, mine: Path, monkeypatch: Patch) -> Say:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(root / "cache"))
    Path("mine").symlink_to(mine)
    return hopscope


def test_a_benchmark_from_its_questions_to_its_figure(say: Say, tmp_path: Path) -> None:
    out = say("lm", "ask", *SMALL)[1]
    assert "question 6 of 6" in out
    assert "equations-d1" in out
    (name,) = Store(tmp_path / "runs").names()
    assert name.startswith("lm-mine-exact-")
    assert say("lm", "ask", *SMALL, "--protocol", "paper", "--tries", "3")[0] == 0
    for words in (["show", "exact"], ["resume", "exact"], ["show", "exact", "paper"]):
        code, out, err = say(*words)
        assert code == 0, err
        assert "equations-d1" in out
    (kind,) = json.loads(say("show", "exact", "--json")[1])["results"]
    assert kind["kind"] == "equations-d1"
    assert kind["interval"][0] <= kind["accuracy"] <= kind["interval"][1]
    rows = [json.loads(line) for line in say("show", "paper", "--answers")[1].splitlines()]
    assert [each["index"] for each in rows] == list(range(6))
    assert {len(text.split()) <= 4 for each in rows for text in each["said"]} == {True}
    assert say("show", "exact", "paper", "--figure", "drawn.svg")[0] == 0
    assert (tmp_path / "drawn.svg").is_file()


def test_the_claims_are_judged_on_one_model(
    say: Say, tmp_path: Path, make_tiny: Callable[..., LanguageModel]
) -> None:
    tiny = make_tiny("raw", 5, (*CITIES, *FIRST_NAMES, *COUNTRIES))
    tiny.model.config.max_position_embeddings = 512
    tiny.model.save_pretrained("large")
    tiny.tokenizer.save_pretrained("large")
    words = "lm claims --model large --template raw --questions 2 --threads 1".split()
    found = json.loads(say(*words, "--json", "--save", "rows.jsonl")[1])
    assert {its["verdict"] for its in found.values()} == {"needs larger models"}
    lines = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    rows = [line for line in lines if "parameters" in line]
    assert len(rows) == 18
    assert {row["parameters"] for row in rows} == {tiny.model.num_parameters()}
    assert "musat/lm-solve: needs larger models" in say(*words)[1]


def test_heads_are_read_switched_off_and_kept(say: Say, tmp_path: Path) -> None:
    words = "lm heads --model mine --template raw --hops 1 --top 1 --questions 10".split()
    out = say(*words, "--save", "heads.json", "--figure", "heads.svg")[1]
    assert "key 0 → query" in out
    assert "Accuracy on 10 other questions" in out or "nothing to switch off" in out
    assert (tmp_path / "heads.svg").stat().st_size
    kept = json.loads((tmp_path / "heads.json").read_text())
    assert len(kept["own"]) == len(kept["routes"])
    assert json.loads(say(*words, "--json", "--save", "h.retrieval.json")[1])["questions"] == 10
    assert len(json.loads((tmp_path / "h.retrieval.json").read_text())) == 8
    store = Store(tmp_path / "kept")
    prompts = (Prompts(formulation="f1", hops=1),)
    mine, chat = (
        store.create(LmBench(model="mine", prompts=prompts, asking=Asking(template=template)))
        for template in ("raw", "chat")
    )
    words += ["--store", str(store.root), "--keep"]
    assert f"kept with {mine.name}" in say(*words, mine.name)[1]
    assert json.loads(RunFolder(mine.path).read("heads-equations-d1.json"))["own"]
    mine.commit({WEIGHTS: b'{"parameters":1,"weights":"others"}'})
    for run, line in (
        (chat, "a benchmark of mine (template chat, float32); the heads are of mine"),
        (mine, "was begun with other weights than mine has now"),
    ):
        code, _, err = say(*words, run.name)
        assert (code, line in err) == (2, True), err


def test_a_stopped_circuit_ends_with_the_same_rows_and_its_figure(
    say: Say, tmp_path: Path, planted: Both, traced: Callable[[bool], Path], recipe: LmCircuit
) -> None:
    """The command goes on with what was measured in pieces."""
    planted(True).model.save_pretrained("planted")
    planted(True).tokenizer.save_pretrained("planted")
    store = Store(tmp_path / "runs")
    for step in (4, 15, 34):
        stopped(recipe, planted(True), store, step)
        assert store.create(recipe).files("rows/part-")
    words = "lm circuit --model planted --template raw --hops 2 --questions 10"
    words += " --search-questions 10 --test-questions 10 --threads 1"
    code, out, err = say(*words.split(), "--save", "c.circuit.json", "--figure", "c.svg")
    assert code == 0, err
    assert "question 50 of 50" in out
    assert "planted on equations-d2: 10 of 10 answered right (0.72 … 1.00; chance 0.25)" in out
    assert "look-ups: stacked" in out
    (name,) = store.names()
    assert name.startswith("lm-circuit-planted-equations-d2-")
    folder = find_circuit(recipe, pytest.fail, store)  # it is complete: no model is made
    assert (folder.name, folder.verify()) == (name, [])
    whole = (traced(True) / "rows/all.jsonl").read_bytes()
    assert (folder.path / "rows/all.jsonl").read_bytes() == whole
    assert (tmp_path / "c.svg").exists()
    told = json.loads(say(*words.split(), "--json")[1])
    assert told["verdict"][-2:] == ["look-ups: stacked", "the last look-up goes by: word"]
    assert told["proof"][1]["circuit"]["mean"] == pytest.approx(1, abs=0.01)
    assert "value 1 → answer" in say("circuit", "c.circuit.json")[1]
    shown = " ".join(say("show", name)[1].split())
    for line in (
        "before each layer, on 10 questions (█",
        "what roles hold, on 10 fresh questions (95 % for all rows together)",
        "from the first 10 questions; losses and scores from the 10 fresh ones (95 %)",
    ):
        assert line in shown
    assert "previous-token" not in shown
    rows = json.loads(say("show", name, "--json")[1])["results"]
    assert {row["exchange"] for row in rows} == {"x0", "x1", "x2", "x1…"}


def test_resume_asks_an_endpoint_only_if_its_url_is_named(
    say: Say, tmp_path: Path, monkeypatch: Patch
) -> None:
    opened: list[str] = []

    def endpoint(url: str, *_: object, **__: object) -> None:
        opened.append(url)
        raise EndpointFailed("nobody there")

    monkeypatch.setattr("hopscope.lm.bench.Endpoint", endpoint)
    there = "http://127.0.0.1:9/v1#theirs"
    asking = Asking(protocol="greedy")
    bench = LmBench(model=there, prompts=(Prompts(formulation="equations", hops=1),), asking=asking)
    name = Store(tmp_path / "runs").create(bench).name
    for words in ([], ["--endpoint", "http://127.0.0.1:9/v1#mine"]):
        code, _, err = say("resume", name, *words)
        assert (code, opened) == (2, []), err
        assert f"$HOPSCOPE_API_KEY to {there}: if you trust it, add --endpoint '{there}'" in err
    assert "nobody there" in say("resume", name, "--endpoint", there)[2]
    assert opened == ["http://127.0.0.1:9/v1"]


MISTAKES = [
    (
        "lm circuit --model mine --template raw --hops 2 --questions 10 --search-questions 10",
        "mine answers equations-d2 at chance",
    ),
    (
        "lm ask --model http://127.0.0.1:9/v1 --protocol greedy",
        "write the model's name after the URL, as http:",
    ),
    ("lm ask --hops x", "--hops is 'x'; expected a number or a range"),
    ("lm ask --model mine --formulations f1", "mine has no chat template: use --template raw"),
    ("lm heads --model mine --questions 1", "'--questions': 1 is not in the range x>=10"),
    ("lm circuit --questions 9", "'--questions': 9 is not in the range x>=10"),
    ("lm ask --sample 100000000", "'--sample': 100000000 is not in the range 0<=x<=99999999"),
]


def test_a_mistake_is_one_line(say: Say) -> None:
    for words, answer in MISTAKES:
        code, _, err = say(*words.split())
        assert (code, answer in err, len(err.strip().splitlines())) == (2, True, 1), (words, err)
    assert re.search(r"smollm2-135m +SmolLM2-135M-Instruct.* Apache-2.0 +no", say("lm", "list")[1])
