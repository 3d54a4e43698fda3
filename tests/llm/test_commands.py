"""`hopscope llm` and `hopscope models`, with a model of a few thousand weights in a folder."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from calling import Patch, Say

from hopscope.configs import LlmBench, Prompts
from hopscope.llm.local import LocalModel
from hopscope.store import RunFolder, Store

Both = Callable[[bool], LocalModel]
SMALL = (
    "--model mine --template raw --questions 6 --formulations f1 --hops 1 --max-tokens 4".split()
)


@pytest.fixture
def say(root: Path, hopscope: Say, mine: Path, monkeypatch: Patch) -> Say:
    monkeypatch.setenv("HOPSCOPE_CACHE", str(root / "cache"))
    Path("mine").symlink_to(mine)
    return hopscope


def test_a_benchmark_from_its_questions_to_its_figure(say: Say, tmp_path: Path) -> None:
    out = say("llm", "bench", *SMALL)[1]
    assert "question 6 of 6" in out
    assert "equations-d1" in out
    (name,) = Store(tmp_path / "runs").names()
    assert name.startswith("llm-mine-exact-")
    assert say("llm", "bench", *SMALL, "--protocol", "paper", "--tries", "3")[0] == 0
    for words in (["show", "exact"], ["resume", "exact"], ["llm", "show", "exact", "paper"]):
        code, out, err = say(*words)
        assert code == 0, err
        assert "equations-d1" in out
    (kind,) = json.loads(say("llm", "show", "exact", "--json")[1])
    assert kind["kind"] == "equations-d1"
    assert kind["interval"][0] <= kind["accuracy"] <= kind["interval"][1]
    rows = [json.loads(line) for line in say("llm", "show", "paper", "--answers")[1].splitlines()]
    assert [each["index"] for each in rows] == list(range(6))
    assert {len(text.split()) <= 4 for each in rows for text in each["said"]} == {True}
    assert say("llm", "show", "exact", "paper", "--figure", "drawn.svg")[0] == 0
    assert (tmp_path / "drawn.svg").is_file()


def test_heads_are_read_switched_off_and_kept(say: Say, tmp_path: Path) -> None:
    words = "llm heads --model mine --template raw --hops 1 --draws 1 --top 1".split()
    out = say(*words, "--questions", "8")[1]
    assert "key 0 → query" in out
    assert "Switching off" in out or "nothing to switch off" in out
    kept, scores = (
        json.loads((tmp_path / "reports" / f"mine-equations-d1-{name}.json").read_text())
        for name in ("heads", "heads-retrieval")
    )
    assert len(kept["own"]) == len(kept["routes"])
    assert len(scores) == 8
    words += ["--questions", "2"]
    out, err = say(*words, "--json", "--out", "here")[1:]
    assert json.loads(out)["questions"] == 2
    assert "figure: here/mine-equations-d1-heads.svg" in err
    store = Store(tmp_path / "kept")
    prompts = (Prompts(formulation="f1", hops=1),)
    mine, other = (
        store.create(LlmBench(model=model, prompts=prompts)) for model in ("mine", "other")
    )
    words += ["--store", str(store.root), "--keep"]
    assert f"kept with {mine.name}" in say(*words, mine.name)[1]
    assert json.loads(RunFolder(mine.path).read("heads-equations-d1.json"))["own"]
    code, _, err = say(*words, other.name)
    assert (code, "a benchmark of other; the heads are of mine" in err) == (2, True)


def test_a_mechanism_from_pairs_to_its_figure(say: Say, tmp_path: Path, planted: Both) -> None:
    planted(True).model.save_pretrained("planted")
    planted(True).tokenizer.save_pretrained("planted")
    words = "llm mechanism --model planted --template raw --hops 2 --questions 4 --searched 2"
    words += " --proved 2 --draws 2 --threads 1"
    code, out, err = say(*words.split(), "--out", "circuit.json")
    assert code == 0, err
    assert "question 14 of 14" in out
    assert "planted on equations-d2: 4 of 4 answered right (0.51 … 1.00; guessing 0.25)" in out
    assert "look-ups: stacked where it is asked" in out
    (name,) = Store(tmp_path / "runs").names()
    assert name.startswith("mechanism-planted-equations-d2-")
    assert (tmp_path / "reports" / f"{name}.svg").exists()
    told = json.loads(say(*words.split(), "--json")[1])
    assert told["verdict"][-1] == "look-ups: stacked where it is asked"
    assert told["proof"][1]["knocked"]["mean"] == pytest.approx(1, abs=0.01)
    assert "value 1 → answer" in say("circuit", "show", "circuit.json")[1]
    assert "what roles hold, on 2 fresh questions" in say("show", name)[1]
    rows = json.loads(say("show", name, "--json")[1])["results"]
    assert {row["exchange"] for row in rows} == {"x0", "x1", "x2", "x1…"}


MISTAKES = [
    (
        "llm mechanism --model mine --template raw --hops 2 --questions 4 --searched 2",
        "mine answers equations-d2 at guessing level",
    ),
    ("llm bench --hops x", "--hops is 'x'; expected a number or a range"),
    ("llm bench", "`hopscope models pull smollm2-135m`"),
    (
        "llm bench --model http://127.0.0.1:9/v1 --protocol greedy",
        "write the model's name behind the URL, as http:",
    ),
    ("llm bench --model mine --formulations f1", "mine has no chat template: use --template raw"),
    ("llm bench --model mine --template raw --formulations f1 --hops 20", "do not fit into mine's"),
    ("llm heads --model mine --questions 1", "needs at least 2 questions"),
    ("llm show", "llm show needs the name of a run"),
    ("models pull", "models pull needs MODEL: A name of `hopscope models`"),
]


def test_a_mistake_is_one_line(say: Say) -> None:
    for words, answer in MISTAKES:
        code, _, err = say(*words.split())
        assert (code, answer in err, len(err.strip().splitlines())) == (2, True, 1), (words, err)
    assert re.search(r"smollm2-135m +SmolLM2-135M-Instruct.* Apache-2.0 +no", say("models")[1])
