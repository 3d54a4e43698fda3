"""The command as a user calls it: one line for each mistake, and an exit code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hopscope.cli.commands import COMMANDS
from hopscope.cli.main import main
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.store import Store
from hopscope.store.manifest import FileEntry
from hopscope.training import train

CALL = "from hopscope.cli.main import main; main()"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOPSCOPE_STORE", str(tmp_path / "runs"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hopscope(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    before = sys.argv
    sys.argv = ["hopscope", *arguments]
    try:
        main()
    except SystemExit as stop:
        captured = capsys.readouterr()
        return int(stop.code or 0), captured.out, captured.err
    finally:
        sys.argv = before
    raise AssertionError("main returned without exiting")


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
        (["train", "demo", "--task.hops", "1000000"], "GiB, and this machine has"),
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
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    code, out, err = hopscope(capsys, *arguments)
    assert code == 2
    assert text in err
    assert err.startswith("hopscope: ")
    assert err.count("\n") == 1
    assert "│" not in err
    assert out == ""
    assert Store().names() == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.foo", "ends in .svg, .pdf, .png, not x.foo"),
        ("x", "ends in .svg, .pdf, .png, not x"),
        ("folder.svg", "folder.svg is a folder"),
    ],
)
def test_a_figure_needs_a_file_of_a_known_format(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (root / "folder.svg").mkdir()
    code, _, err = hopscope(capsys, "depth", "--figure", name)
    assert code == 2
    assert text in err
    assert err.count("\n") == 1


def test_a_run_that_cannot_be_read_hides_no_other(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "--training.steps 2 --training.batch 4 --training.validation-examples 8 --threads 1"
    for seed in ("0", "1", "2"):
        hopscope(capsys, "train", "demo", *flags.split(), "--seeds", seed)
    strange, damaged, whole = Store().names()
    config = root / "runs" / strange / "config.json"
    text = config.read_text().replace('"seeds":[0]', '"seeds":[-1]')
    config.write_text(text)
    manifest = root / "runs" / strange / "manifest.json"
    entry = json.loads(manifest.read_text())
    entry["files"]["config.json"] = json.loads(FileEntry.of(text.encode()).model_dump_json())
    del entry["check"]
    manifest.write_text(json.dumps(entry))
    with (root / "runs" / damaged / "metrics" / "losses.parquet").open("ab") as file:
        file.write(b"more")
    code, out, err = hopscope(capsys, "runs")
    assert code == 1
    assert whole in out
    assert len(err.splitlines()) == 2
    assert f"{config} describes no run" in err
    assert f"{damaged}/metrics/losses.parquet is damaged" in err
    before = Store().names()
    assert "would remove" in hopscope(capsys, "rm", whole, "--dry-run")[1]
    assert Store().names() == before
    for name in (strange, damaged[-10:], whole):
        assert "removed" in hopscope(capsys, "rm", name)[1]
    assert Store().names() == []


def test_rm_takes_no_part_of_a_name(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--training.steps 2 --training.batch 4 --training.validation-examples 8 --threads 1"
    hopscope(capsys, "train", "demo", *flags.split())
    (name,) = Store().names()
    for part in (name[:-1], name[-9:], "retrieval", ""):
        assert hopscope(capsys, "rm", name, part)[0] == 2
    assert Store().names() == [name]
    code, _, err = hopscope(capsys, "rm", "gallery/demo")
    assert code == 2
    assert "read-only" in err


def test_train_resume_show_and_remove(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--training.steps 6 --training.batch 4 --training.validation-examples 8".split()
    code, out, _ = hopscope(capsys, "train", "demo", *flags, "--seeds", "0", "1", "--threads", "1")
    assert code == 0
    assert re.search(r"hop 1 \d\.\d+ \(\d\.\d+ … \d\.\d+\)", out)
    assert "final loss" in out
    (name,) = Store().names()
    assert hopscope(capsys, "resume", name[-6:])[0] == 0
    code, out, _ = hopscope(capsys, "runs")
    assert code == 0
    assert name in out
    code, out, _ = hopscope(capsys, "show", name, "--figure", "loss.svg")
    assert code == 0
    assert re.search(r"training\.steps +6 *\n", out)
    assert "checkpoints at steps 0, 6" in out
    assert (root / "loss.svg").exists()
    code, out, _ = hopscope(capsys, "sql", "select count(*) as rows from metrics", "--csv")
    assert (code, out.split()) == (0, ["rows", str(2 * 2 * (6 + 7))])
    code, out, _ = hopscope(capsys, "sql", "select run, max(step) from metrics group by run")
    assert name in out
    code, out, _ = hopscope(capsys, "verify", name)
    assert (code, out) == (0, f"{name}: all 5 files are as committed\n")
    (root / "runs" / name / "checkpoints" / "step-00000006.safetensors").write_bytes(b"")
    code, _, err = hopscope(capsys, "verify", name)
    assert code == 1
    assert "0 bytes, expected" in err
    assert hopscope(capsys, "rm", name)[0] == 0
    code, out, _ = hopscope(capsys, "runs")
    assert "no runs in" in out


def test_a_training_begins_where_a_shorter_one_ended(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "--training.batch 4 --training.warmup 0 --threads 1".split()
    assert hopscope(capsys, "train", "demo", *flags, "--training.steps", "4")[0] == 0
    (short,) = Store().names()
    code, _, err = hopscope(
        capsys, "train", "demo", *flags, "--training.steps", "6", "--prolong", short[-6:]
    )
    assert code == 2
    assert "its training.schedule is cosine" in err
    constant = [*flags, "--training.schedule", "constant"]
    assert hopscope(capsys, "train", "demo", *constant, "--training.steps", "4")[0] == 0
    (short,) = {*Store().names()} - {short}
    code, out, _ = hopscope(
        capsys, "train", "demo", *constant, "--training.steps", "6", "--prolong", short
    )
    assert code == 0
    assert "final loss" in out
    assert "step 4 of 6" in out
    assert len(Store().names()) == 3
    assert (root / "runs" / short).exists()


def test_an_experiment_file_trains_as_the_preset_it_was_written_from(
    root: Path, capsys: pytest.CaptureFixture[str], tiny: Experiment
) -> None:
    (root / "mine.json").write_text(tiny.canonical_json())
    assert hopscope(capsys, "train", "mine.json")[0] == 0
    assert Store().names() == [tiny.run_name()]
    (root / "mine.json").write_text('{"modle": {}}')
    code, _, err = hopscope(capsys, "train", "mine.json")
    assert code == 2
    assert "Experiment.modle: unknown field" in err


def test_unreadable_runs_are_listed_as_such(
    root: Path, capsys: pytest.CaptureFixture[str], tiny: Experiment
) -> None:
    train(tiny)
    bad = Store().create(tiny.model_copy(update={"seeds": (9,)}))
    (bad.path / "manifest.json").write_text("{}")
    code, out, err = hopscope(capsys, "runs")
    assert code == 1
    assert tiny.run_name() in out
    assert "is not a manifest" in err


def test_presets_are_listed_with_their_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert "musat/transformer-d-epochs" in hopscope(capsys, "presets")[1]
    out = hopscope(capsys, "presets", "musat/transformer-a")[1]
    assert re.search(r"training\.steps +24000 +§8\.1: 24k", out)


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


def test_the_demo_tells_the_whole_story_on_one_page(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
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
    code, out, _ = hopscope(capsys, "demo")
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
