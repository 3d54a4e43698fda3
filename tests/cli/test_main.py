"""The command as a user calls it: one line for each mistake, and an exit code."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hopscope.cli.commands import COMMANDS
from hopscope.cli.main import run
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import ConfigError
from hopscope.store import Store

Say = Callable[..., tuple[int, str, str]]


CALL = "from hopscope.cli.main import main; main()"


def test_help_imports_neither_torch_nor_the_commands() -> None:
    code = f"import sys; sys.argv = ['hopscope', '--help']\ntry:\n    {CALL}\nexcept SystemExit:\n"
    code += "    print(sorted({'torch', 'tyro', 'pydantic', 'duckdb'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert all(name in done.stdout for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["trian"], "unknown command 'trian': did you mean `hopscope train`?"),
        (["zzz"], "unknown command 'zzz': see `hopscope --help`"),
        (["train"], "train needs a preset first"),
        (["train", "musat/fig4"], "unknown preset 'musat/fig4'"),
        (
            ["train", "mine.py"],
            "mine.py is a script: `hopscope sweep mine.py` trains what it lists",
        ),
        (
            ["train", "demo", "--seeds", "0-7"],
            "--seeds is '0-7'; expected FIRST..LAST, such as 0..7",
        ),
        (["train", "demo", "--seeds=0-7"], "--seeds is '0-7'; expected FIRST..LAST, such as 0..7"),
        (["show", "demo"], "There are: none; or gallery/demo, which comes with hopscope"),
        (["train", "dmeo"], "did you mean demo?"),
        (["train", "demo", "--model.layrs", "3"], "Unrecognized options: --model.layrs"),
        (
            ["train", "demo", "--model.layers", "x"],
            "--model.layers is 'x'; expected a whole number",
        ),
        (["train", "demo", "--task.hops", "0"], "hops: Input should be greater than or equal to 1"),
        (["train", "demo", "--task.dim", "5"], "dim is 5; a rotary code"),
        (["train", "demo", "--model.heads", "5"], "heads is 5 and d_model 64"),
        (["train", "demo", "--threads", "0"], "threads is 0; expected 1 to"),
        (["train", "none.json"], "none.json is missing"),
        (["resume", "x"], "no run matches 'x'"),
        (["show", "x"], "no run matches 'x'"),
        (["verify", "x"], "no run matches 'x'"),
        (["rm"], "rm needs the name of a run"),
        (["rm", "x"], "are named 'x', and rm takes no less than a whole name, hash or tag"),
        (["demo", "--seed", "-1"], "seeds.0: Input should be greater than or equal to 0, got -1"),
        (["train", "demo", "--threads", "99999"], "threads is 99999; expected 1 to 1,024"),
        (["train", "demo", "--training.betas", "2", "3"], "betas.0: Input should be less than 1"),
        (["train", "demo", "--training.betas", "a", "3"], "'a', '3'; expected numbers"),
        (["train", "demo", "--seeds", "a", "b"], "--seeds is 'a', 'b'; expected whole numbers"),
        (["train", "demo", "--training.lr", "abc"], "--training.lr is 'abc'; expected a number"),
        (["train", "demo", "--model.d-model", "1000000"], "GiB, and this machine has"),
        (["train", "demo", "--training.batch", "100000000"], "GiB, and this machine has"),
        (["train", "demo", "--task.chains", "10000000"], "GiB, and this machine has"),
        (["maps", "x", "--step", "abc"], "--step is 'abc'; expected a whole number"),
        (["maps", "x", "--examples"], "examples needs a value"),
        (["depth", "--hops", "abc"], "--hops is 'abc'; expected a whole number"),
        (["markov", "train", "--stages", "X"], "stages is 'X'; expected the letters C, W and a"),
        (["maps", "gallery/demo", "--examples", "100000000"], "positions would take about"),
        (["ablate", "gallery/demo", "--examples", "100000000"], "take fewer examples"),
        (["maps", "gallery/demo", "--figure", "x.foo"], "ends in .svg, .pdf, .png, not x.foo"),
        (["maps", "gallery/demo", "--out", "."], ". is a folder; expected a file"),
        (["sql", ""], "the query is empty"),
        (["maps", "gallery/demo", "--example", "99999999"], "a number from 0 to 9,999"),
        (["maps", "gallery/demo", "--example", "-1"], "a number from 0 to 9,999"),
        (["llm", "bench", "--hops", "5..1"], "the smaller number first"),
        (["llm", "bench", "--model", "nobody-7b"], "no model 'nobody-7b'"),
        (["sql", "select"], "Parser Error"),
        (["presets", "x"], "unknown preset 'x'"),
        (["maps", "x"], "no run matches 'x'"),
        (["discover", "x", "--examples", "0"], "no run matches 'x'"),
        (["emergence", "x"], "no run matches 'x'"),
        (["circuit", "show", "x"], "no run matches 'x'"),
        (
            ["circuit", "drop", "x"],
            "unknown action 'drop' of circuit: there are show, export",
        ),
        (["ablate", "x"], "no run matches 'x'"),
        (["completion", "tcsh"], "invalid choice 'tcsh'"),
        (["maps"], "maps needs RUN: The run's name, or enough of it"),
        (["llm", "bnech"], "unknown action 'bnech' of llm: did you mean `hopscope llm bench`?"),
        (["gallery", "demo"], "unknown action 'demo' of gallery: there are list, copy"),
        (["circut"], "did you mean `hopscope circuit`?"),
    ],
)
def test_a_mistake_is_one_line_and_an_exit_code(
    root: Path, hopscope: Say, arguments: list[str], text: str
) -> None:
    code, out, err = hopscope(*arguments)
    assert code == 2
    assert text in err
    assert err.startswith("hopscope: ")
    assert err.count("\n") == 1
    assert "│" not in err
    assert out == ""
    assert Store().names() == []


@pytest.mark.parametrize(
    "line",
    [
        "train demo | --address x:1 --gpus-per-run 0.5 --cpus-per-run 2",
        "train demo --workers 1 | --gpus-per-run 0.5",
        "sweep plan sweep.json | --gpus-per-run 0.5",
        "reproduce musat/fig2 --list | --workers 2 --time-limit 5",
        "reproduce musat/fig2 --draw | --threads 1 --protocol full",
        "view --out page | --host lab --port 80 --socket s --read-only --no-browser",
        "circuit export gallery/demo --format json | --style dark --dpi 100",
        "circuit export gallery/demo --format edges | --columns 1",
        "circuit show circuit.json | --seed 1 --step 2 --circuit-file x.json",
        "maps gallery/demo --json | --style dark",
        "maps gallery/demo --example 1 | --examples 8 --circuit-file x.json",
        "discover gallery/demo --all | --seed 0",
        "discover gallery/demo --all | --dpi 100",
        "contents gallery/demo --over-training | --step 100",
        "compare gallery/demo gallery/demo | --style dark",
        "show gallery/demo --config | --figure x.svg",
        "depth --table 1..3 | --hops 3 --order forward --heads 1",
        "depth | --style dark",
        "presets demo --out demo.json | --json",
        "export gallery/demo --format transformers | --project mine",
    ],
)
def test_a_flag_of_which_nothing_would_come_is_refused(
    root: Path, hopscope: Say, line: str
) -> None:
    (root / "sweep.json").write_text(Experiment().to_file())
    (root / "circuit.json").write_text("{}")
    _, flags = line.split(" | ")
    code, out, err = hopscope(*line.replace("| ", "").split())
    assert (code, out) == (2, "")
    assert " would be ignored " in err
    assert {w.strip(",") for w in err.partition(" would")[0].split()[1:]} == {
        word for word in flags.split() if word.startswith("--")
    }
    assert err.count("\n") == 1
    assert not (root / "runs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "nope"], ["runs"], ["sql", "select 1 as a"], ["claims"], ["gallery"],
        ["llm", "show", "nope"], ["reproduce", "--list"],
    ],
)  # fmt: skip
def test_to_print_text_no_torch_is_loaded(root: Path, arguments: list[str]) -> None:
    code = f"import sys; sys.argv = ['hopscope', *{arguments!r}]\ntry:\n    {CALL}\n"
    code += "except SystemExit:\n    print('torch' in sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "False"


@pytest.mark.slow
def test_the_demo_tells_the_whole_story_on_one_page(
    root: Path, hopscope: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hopscope.papers import demo
    from hopscope.papers.preset import Preset

    easy = Experiment(
        task=Retrieval(hops=1, chains=2, position="pair", base=10),
        model=Model(layers=2, heads=2, d_model=32, init="fan-in"),
        training=Training(
            steps=400, batch=32, lr=4e-3, warmup=50, schedule="cosine", checkpoint_every=100,
            validation_examples=64,
        ),
    )  # fmt: skip
    monkeypatch.setattr(demo, "preset", lambda: Preset("demo", "easy", easy, {}))
    code, out, _ = hopscope("demo")
    assert code == 0
    assert "guessing" in out
    assert "query ← value 0" in out
    assert "emerged at step" in out
    (page,) = (root / "reports").iterdir()
    assert str(page.relative_to(root)) in out
    text = page.read_text()
    for title in ("What it learned", "How it works", "When it appeared", "Where every head looks"):
        assert f"<h2>{title}</h2>" in text
    assert text.count("<svg ") == 5


@pytest.mark.parametrize(
    ("words", "same"),
    [(["help"], ["--help"]), (["help", "llm"], ["llm", "--help"]), (["-V"], ["--version"])],
)
def test_other_words_for_help(
    words: list[str], same: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == run(same) == 0
    said = capsys.readouterr().out
    assert said[: len(said) // 2] == said[len(said) // 2 :]
    assert "hopscope" in said


def test_help_is_framed_as_the_output_can_show(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for encoding in ("utf-8", "ascii"):
        stream = io.TextIOWrapper(io.BytesIO(), encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit):
            run(["claims", "--help"])
        stream.seek(0)
        told.append(stream.read())
    assert ["╭" in each for each in told] == [True, False]
    assert all("--results" in each for each in told)


def test_help_for_nobody_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the output is closed, Python has no stream for it."""
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit) as stop:
        run(["claims", "--help"])
    assert not stop.value.code
    with pytest.raises(ConfigError, match="Unrecognized options: --zzz"):
        run(["claims", "--zzz"])
