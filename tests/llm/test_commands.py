"""`hopscope llm` and `hopscope models`, with a model of a few thousand weights in a folder."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hopscope.cli.main import main
from hopscope.configs import LlmBench, LlmMechanism, Prompts, Tracing
from hopscope.llm.local import LocalModel
from hopscope.llm.mechanism import LlmFindings
from hopscope.llm.pairs import role_table
from hopscope.report.mechanism import mechanism_figure
from hopscope.store import RunFolder, Store

Say = Callable[..., tuple[int, str, str]]
SMALL = (
    "--model mine --template raw --questions 6 --formulations f1 --hops 1 --max-tokens 4".split()
)


@pytest.fixture
def say(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    tiny: LocalModel,
) -> Say:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("HOPSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    tiny.model.save_pretrained("mine")
    tiny.tokenizer.save_pretrained("mine")
    capsys.readouterr()

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["hopscope", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return call


def test_a_benchmark_from_its_questions_to_its_figure(say: Say, tmp_path: Path) -> None:
    code, out, err = say("llm", "bench", *SMALL)
    assert code == 0, err
    assert "question 6 of 6" in out
    assert "equations-d1" in out
    (name,) = Store(tmp_path / "runs").names()
    assert name.startswith("llm-mine-exact-")
    assert say("llm", "bench", *SMALL, "--protocol", "paper", "--tries", "3")[0] == 0
    for words in (["show", "exact"], ["resume", "exact"], ["llm", "show", "exact", "paper"]):
        code, out, err = say(*words)
        assert code == 0, err
        assert "equations-d1" in out
    assert "llm-mine-exact" in say("runs")[1]
    assert "as committed" in say("verify", "exact")[1]
    (kind,) = json.loads(say("llm", "show", "exact", "--json")[1])
    assert kind["kind"] == "equations-d1"
    assert kind["interval"][0] <= kind["accuracy"] <= kind["interval"][1]
    rows = [json.loads(line) for line in say("llm", "show", "exact", "--answers")[1].splitlines()]
    assert [each["index"] for each in rows] == list(range(6))
    for words in (["llm", "show", "exact", "paper"], ["show", "exact"]):
        assert say(*words, "--figure", "drawn.svg")[0] == 0
        (tmp_path / "drawn.svg").unlink()


def test_hops_and_formulations_make_the_kinds(say: Say, tmp_path: Path) -> None:
    words = "--model mine --template raw --questions 1 --formulations f1,f1".split()
    assert "each kind of question once" in say("llm", "bench", *words)[2]
    words = "--model mine --template raw --questions 1 --formulations f1 --hops 1..2 --chains 2"
    assert say("llm", "bench", *words.split())[0] == 0
    kinds = Store(tmp_path / "runs").find("llm").recipe.model_dump()["prompts"]
    assert [(each["formulation"], each["hops"]) for each in kinds] == [
        ("equations", 1),
        ("equations", 2),
    ]


def test_heads_are_read_and_switched_off(say: Say, tmp_path: Path) -> None:
    words = "--model mine --template raw --hops 1 --questions 8 --draws 2 --top 2".split()
    code, out, err = say("llm", "heads", *words)
    assert code == 0, err
    assert "query ← key 0" in out
    assert "Switching off" in out or "nothing to switch off" in out
    kept = json.loads((tmp_path / "reports" / "mine-equations-d1-heads.json").read_text())
    assert len(kept["own"]) == len(kept["routes"])
    scores = json.loads(
        (tmp_path / "reports" / "mine-equations-d1-heads-retrieval.json").read_text()
    )
    assert len(scores) == 8
    assert (tmp_path / "reports" / "mine-equations-d1-heads.svg").exists()


def test_heads_as_json_stand_alone(say: Say, tmp_path: Path) -> None:
    words = "--model mine --template raw --hops 1 --questions 2 --draws 1 --top 1".split()
    code, out, err = say("llm", "heads", *words, "--json")
    assert code == 0, err
    assert json.loads(out)["questions"] == 2
    assert not (tmp_path / "reports").exists()
    assert "figure" not in err
    code, out, err = say("llm", "heads", *words, "--json", "--out", "here")
    assert json.loads(out)["questions"] == 2
    assert "figure: here/mine-equations-d1-heads.svg" in err
    assert (tmp_path / "here" / "mine-equations-d1-heads.json").is_file()


def test_figures_that_cannot_be_drawn_are_refused_before_heads_are_read(say: Say) -> None:
    code, out, err = say("llm", "heads", "--model", "nowhere", "--dpi", "0")
    assert (code, out) == (2, "")
    assert "--dpi is 0; expected" in err


def test_heads_are_kept_with_a_benchmark_of_their_model(say: Say, tmp_path: Path) -> None:
    store = Store(tmp_path / "kept")
    prompts = (Prompts(formulation="f1", hops=1),)
    mine, other = (
        store.create(LlmBench(model=model, prompts=prompts)) for model in ("mine", "other")
    )
    words = "--model mine --template raw --hops 1 --questions 2 --draws 1 --top 1".split()
    words = [*words, "--store", str(store.root), "--keep"]
    code, out, err = say("llm", "heads", *words, mine.name)
    assert (code, f"kept with {mine.name}" in out) == (0, True), err
    kept = json.loads(RunFolder(mine.path).read("heads-equations-d1.json"))
    assert len(kept["own"]) == len(kept["routes"])
    code, _, err = say("llm", "heads", *words, other.name)
    assert code == 2
    assert "a benchmark of other; the heads are of mine" in err


def test_a_mechanism_from_its_pairs_to_its_figure(
    say: Say, tmp_path: Path, planted: Callable[[bool], LocalModel]
) -> None:
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
    assert "answer ← value 1" in say("circuit", "show", "circuit.json")[1]
    shown = say("show", name)[1]
    assert "answer has x1 and not yet x2 before layers 2 … 2" in shown
    assert "what roles hold, on 2 fresh questions" in shown
    rows = json.loads(say("show", name, "--json")[1])["results"]
    assert {row["exchange"] for row in rows} == {"x0", "x1", "x2", "x1…"}
    assert say("show", name, "--figure", "maps.png")[0] == 0
    assert "as committed" in say("verify", name)[1]


MISTAKES = [
    ("llm mechanism --model http://127.0.0.1:9/v1#x --hops 1", "is an endpoint, which shows no"),
    ("llm mechanism --model mine --formulation f3 --elsewhere f5", "kingdoms has no role"),
    ("llm mechanism --model mine --hops 2 --chains 2", "cannot be paired: answers are measured"),
    (
        "llm mechanism --model mine --template raw --hops 2 --questions 4 --searched 2",
        "mine answers equations-d2 at guessing level",
    ),
    ("llm mechanism --model mine --hops 2 --elsewhere f4", "hops is 2; functions always has"),
    ("llm mechanism --model nothing --hops 1", "no model 'nothing': expected one of"),
    ("llm bogus", "unknown action 'bogus' of llm: there are bench, show, heads, mechanism, export"),
    ("llm bench --formulations f9", "'equations', 'lives-with', 'kingdoms'"),
    ("llm bench --hops x", "--hops is 'x'; expected a number or a range"),
    ("llm bench --hops 21 --formulations f1", "hops is 21; a question has 1 to 20"),
    ("llm bench --formulations f3 --chains 9", "chains is 9; kingdoms has words for 8"),
    ("llm bench --model nothing", "no model 'nothing': expected one of smollm2-135m"),
    ("llm bench", "`hopscope models pull smollm2-135m`"),
    ("llm bench --model mine --formulations f1", "mine has no chat template: use --template raw"),
    ("llm bench --model mine --template raw --formulations f1 --hops 20", "do not fit into mine's"),
    (
        "llm bench --protocol greedy --model http://127.0.0.1:9/v1",
        "write the model's name behind the URL",
    ),
    ("llm bench --model http://10.0.0.1:9/v1#x --protocol greedy", "https"),
    ("llm bench --model http://127.0.0.1:9/v1#x --formulations f1", "tells no probabilities"),
    ("llm heads --model mine --questions 1", "needs at least 2 questions"),
    ("llm show", "llm show needs the name of a run"),
    ("models pull", "models pull needs MODEL: A name of `hopscope models`"),
    ("models pull gpt-9", "unknown model 'gpt-9': there are smollm2-135m"),
]


@pytest.mark.parametrize(("words", "answer"), MISTAKES)
def test_a_mistake_is_one_line(say: Say, words: str, answer: str) -> None:
    code, _, err = say(*words.split())
    assert code == 2
    assert answer in err
    assert len(err.strip().splitlines()) == 1


def test_models_and_actions_are_listed(say: Say) -> None:
    assert re.search(r"smollm2-135m +SmolLM2-135M-Instruct", say("models")[1])
    assert re.search(r"Apache-2.0 +no", say("models")[1])
    assert "bench" in say("llm")[1]


def test_one_hop_has_fewer_panels_of_the_logit_lens_than_of_exchanges() -> None:
    recipe = LlmMechanism(
        model="one",
        prompts=Prompts(formulation="equations", hops=1),
        questions=2,
        tracing=Tracing(searched=2),
    )
    clean = {name: [0.0, 1.0, 0.1] for name in ("x0", "x1")}
    answered = {"phase": "answers", "shape": [2, 1], "acceptable": 4, "right": True, "clean": clean}
    roles = len(role_table(recipe.prompts))
    held = {
        "phase": "roles",
        "clean": clean,
        "moved": np.full((2, roles, 3, 3), 0.9).tolist(),
        "lens": np.full((1, roles, 3, 2), 0.5).tolist(),
    }
    found = LlmFindings(recipe, [answered, answered, held, held])
    drawn = [axes for axes in mechanism_figure(found).axes if axes.axison and axes.get_title()]
    assert [axes.get_title() for axes in drawn] == [
        "x0, wherever it stands", "x1, wherever it stands", "logit lens: x1",
    ]  # fmt: skip
