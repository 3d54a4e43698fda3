"""A mistake is one line that says what to do, and an exit code; nothing is written or opened."""

import shlex
from pathlib import Path

import pytest
from calling import Patch, Say

from hopscope.cli.commands import COMMANDS
from hopscope.cli.flags import arguments_of
from hopscope.configs import Experiment, Retrieval
from hopscope.store import Store

LINES = """
trian | unknown command 'trian': did you mean `hopscope train`?
zzz | unknown command 'zzz': see `hopscope --help`
bench | unknown command 'bench': did you mean `hopscope llm bench`?
circuit drop x | unknown action 'drop' of circuit: there are show, export
maps | maps needs RUN: The run's name, or enough of it
maps x --examples | examples needs a value
maps x --step abc | --step is 'abc'; expected a whole number
completion tcsh | invalid choice 'tcsh'
show demo | or gallery/demo, which comes with hopscope
sql 'select 1 as x, 2 as x' --json | several columns are called x: name them with `as`
sql x --csv --json | --csv and --json were both given; expected one of them
rm | rm needs the name of a run
rm x | are named 'x', and rm takes no less than a whole name, hash or tag
tag d1 --remove | tag --remove needs the tags that are to go
gallery copy | gallery copy needs GALLERY: A model that `hopscope gallery` lists
llm bench --model nobody-7b | no model 'nobody-7b'
readings fan-in gpt2 | fan-in and gpt2 are both initial weights: a reading has one of them
readings torch cosine | no reading that is tried has torch and cosine
claims musat/abc-fuor-heads --results found | did you mean musat/abc-four-heads
depth --table 5 | expected a range of hops like 1..64
depth --table 0..3 | expected a range of hops
depth --hops 2 --task conditional | give one of --hops, --facts and --task
depth --json --hops 2 --figure x.svg | --json tells what --figure would draw
depth --figure x | ends in .svg, .pdf, .png, not x
depth --figure folder.svg | folder.svg is a folder
depth --figure y.png --dpi 9 | --dpi is 9; expected 50 to 1200
"""
"""What is typed, and what the answer says."""
TRAININGS = """
train | train needs a preset first
train dmeo | unknown preset 'dmeo': did you mean demo?
train mine.py | mine.py is a script: `hopscope sweep mine.py` trains what it lists
train none.json | none.json is missing
train wrong.json | Experiment.modle: unknown field
train demo --seeds=0-7 | --seeds is '0-7'; expected FIRST..LAST, such as 0..7
train demo --seeds a b | --seeds is 'a', 'b'; expected whole numbers
train demo --model.layrs 3 | Unrecognized options: --model.layrs
train demo --training.lr abc | --training.lr is 'abc'; expected a number
train demo --training.betas a 3 | 'a', '3'; expected numbers
train demo --threads 0 | threads is 0; expected 1 to
train demo --workers 1 --prolong x | --prolong goes on with one run: leave out --workers
presets --out x.json | --out writes one preset: name it
presets demo --out x.toml | expected a name that ends in .json
presets demo --out file/x.json | cannot write file/x.json
ngram train --alphabet 50 --parents 1 2 3 | GiB (1,397 of them for transition tables)
ngram theory --alphabet 30 --window 5 | too many for exact distributions: estimate
sweep sweep.py --time-limit 0 | --time-limit is 0.0; expected minutes
sweep plan gone.py | gone.py
sweep slurm sweep.py --shards 5 | --shards is 5; expected at most 4
reproduce fig2 | no target 'fig2': did you mean musat/fig2?
reproduce musat/depth --time-limit nan | --time-limit is nan; expected minutes above 0
reproduce --draw --list | --list lists targets, and --draw draws them: choose one
reproduce chen --draw | nothing to draw: none of 4 targets is measured in results
reproduce chen/growth --draw | nothing to draw: chen/growth is not measured in results
reproduce --json | --json is for --list
"""
MODELS = """
maps gallery/demo --examples 100000000 | positions would take about
maps gallery/demo --example -1 | a number from 0 to 9,999
maps gallery/demo --out . | . is a folder; expected a file
maps gallery/demo --seed 7 | seed is 7; gallery/demo has the seeds 0
ablate gallery/demo --examples 100000000 | take fewer examples
ablate gallery/demo --head '1.0=query>value 7' | there is no role 'value 7' here; the roles are
discover gallery/planted --examples 8 --out file/x.json | cannot write file/x.json: a part of the
discover gallery/ngram | is a run of kind ngram, expected one of kind facts: `hopscope show
show gallery/planted --figure loss.svg | was not trained: it has no loss curves
probe gallery/demo --examples 1 | --examples is 1; maps are fitted on at least 2
probe gallery/demo --examples 2 | examples
patch gallery/demo --examples 1 | --examples is 1; expected at least 2
baselines gallery/demo --examples 1 | --examples is 1 and --steps is 5; expected at least
compare gallery/demo gallery/ngram | only runs of one kind can be compared
compare gallery/demo gallery/planted --figure x.foo | ends in
"""
OUTSIDE = """
view gallery/demo --out v.html | --out is v.html; expected a folder: --single writes
view gallery/demo --single . | is a folder; expected a file
view gallery/demo --out site --single mine | hopscope did not write it
view gallery/demo --single page.html --out . | hopscope did not write it
serve --socket s --port 80 | --socket needs neither --host nor --port
serve --port 99999 | --port is 99999; expected 1 to 65,535
export gallery/demo --step 3 | --step is for --format transformers
export gallery/demo --format transformers --follow | --follow is for trackers
export gallery/demo --format transformers | no GPT-2 computes what this model does: its in
export gallery/ngram --format transformers | expected one of kind facts
export gallery/demo --out file/logs | cannot write file/logs
"""
IGNORED = """
train demo | --address x:1 --gpus-per-run 0.5 --cpus-per-run 2
train demo --workers 1 | --gpus-per-run 0.5
sweep plan sweep.json | --gpus-per-run 0.5
reproduce musat/fig2 --list | --workers 2 --time-limit 5
reproduce musat/fig2 --draw | --threads 1 --protocol full
view --out page | --host lab --port 80 --socket s --read-only --no-browser
circuit export gallery/demo --format json | --style dark --dpi 100
circuit export gallery/demo --format edges | --columns 1
circuit show circuit.json | --seed 1 --step 2 --circuit-file x.json
maps gallery/demo --json | --style dark
maps gallery/demo --example 1 | --examples 8 --circuit-file x.json
discover gallery/demo --all | --seed 0
discover gallery/demo --all | --dpi 100
emergence gallery/demo --all | --seed 5
probe gallery/demo --over-training | --step 100
compare gallery/demo gallery/demo | --style dark
show gallery/demo --config | --figure x.svg
depth --table 1..3 | --hops 3 --order forward --heads 1
depth | --style dark
presets demo --out demo.json | --json
export gallery/demo --format transformers | --project mine
"""
"""A command, and flags of which nothing would come."""
SWEEP = """
from hopscope import Experiment
recipes = lambda: [Experiment(seeds=(seed,)) for seed in range(4)]
"""


@pytest.fixture
def folder(root: Path, monkeypatch: Patch) -> Path:
    """One run, and files of the user's."""

    def nothing(*_: object) -> None:
        raise AssertionError("a port was opened")

    monkeypatch.setattr("hopscope.web.serving.serve", nothing)
    Store().create(Experiment(task=Retrieval(hops=1)))
    texts = {
        "sweep.py": SWEEP,
        "wrong.json": '{"kind": "facts", "modle": {}}',
        "sweep.json": Experiment().to_file(),
    }
    for name in ("circuit.json", "file", "mine", "mine.py", "data.js"):
        texts[name] = "{}"
    for name, text in texts.items():
        (root / name).write_text(text)
    for name in ("folder.svg", "found"):
        (root / name).mkdir()
    return root


def written(folder: Path) -> dict[Path, bytes]:
    paths = [path for path in folder.rglob("*") if not path.is_dir() or path.name != "__pycache__"]
    return {path: path.read_bytes() if path.is_file() else b"" for path in paths}


def is_one_line(answer: tuple[int, str, str]) -> bool:
    code, out, err = answer
    return (code, out, err.count("\n")) == (2, "", 1) and err.startswith("hopscope: ")


@pytest.mark.parametrize("lines", [LINES, TRAININGS, MODELS, OUTSIDE], ids="ltmo")
def test_a_mistake_is_one_line(folder: Path, hopscope: Say, lines: str) -> None:
    before, wrong = written(folder), []
    for line in lines.strip().splitlines():
        words, text = line.split(" | ")
        answer = hopscope(*shlex.split(words))
        if not is_one_line(answer) or text not in answer[2] or "│" in answer[2]:
            wrong.append(f"{line}: {answer}")
    assert not wrong, "\n".join(wrong)
    assert written(folder) == before


def test_a_flag_of_which_nothing_would_come_is_refused(folder: Path, hopscope: Say) -> None:
    before = written(folder)
    for line in IGNORED.strip().splitlines():
        answer = hopscope(*line.replace(" | ", " ").split())
        assert is_one_line(answer), answer
        named, _, rest = answer[2].partition(" would be ignored ")
        assert rest, answer
        flags = {word for word in line.partition(" | ")[2].split() if word.startswith("--")}
        assert {word.strip(",") for word in named.split()[1:]} == flags
    assert written(folder) == before


def test_every_command_refuses_what_there_is_not(folder: Path, hopscope: Say) -> None:
    for name, command in COMMANDS.items():
        words = [argument for argument in arguments_of(command) if not argument.flags]
        asked = [*name.split(), *("nothing" for _ in words)]
        if words and words[0].value == "RUN" and name != "models push":
            answer = hopscope(*asked, *(["--out", "x"] if name == "view" else []))
            assert is_one_line(answer), answer
            assert "no run matches 'nothing'" in answer[2]
        if name not in ("train", "completion"):
            answer = hopscope(*asked, "--zzz")
            assert is_one_line(answer), answer
            assert "Unrecognized options: --zzz" in answer[2], answer
