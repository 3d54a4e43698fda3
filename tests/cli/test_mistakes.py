"""A mistake is one line that says what to do, and an exit code; nothing is written or opened."""

import shlex
from pathlib import Path

import click
import pytest
from calling import Patch, Say

from hopscope.cli.commands import COMMANDS, load
from hopscope.configs import Experiment, Retrieval
from hopscope.store import Store

LINES = """
depth 3 | unexpected argument '3': did you mean --hops 3? (hopscope depth --help)
ngram transfer gallery/ngram 5 | unexpected argument '5': did you mean --chains 5?
probe gallery/demo 1 | --step, --seed, --sample or --threads 1? (hopscope probe --help)
runs demo x | unexpected argument 'x' (hopscope runs --help)
trian | unknown command 'trian': did you mean `hopscope train`?
zzz | unknown command 'zzz': see `hopscope --help`
lm aks | unknown command 'lm aks': did you mean `hopscope lm ask`?
papers zzz | unknown command 'papers zzz': there are list, run, claims
attention | Missing argument 'RUN' (hopscope attention --help)
attention x --examples | Option '--examples' requires an argument
attention x --step abc | Invalid value for '--step': 'abc' is not a valid integer
attention x --exmaples 3 | no option --exmaples: did you mean --examples
completion tcsh | 'tcsh' is not one of 'bash', 'zsh', 'fish'
show demo | or gallery/demo, which comes with hopscope
sql 'select 1 as x, 2 as x' --json | several columns are called x: name them with `as`
sql x --csv --json | --csv and --json were both given; expected one of them
rm | rm needs the name of a run, --tag or --older-than
rm x | is named 'x'; rm needs a whole name, hash or tag
tag d1 --remove | --remove needs at least one tag
lm ask --model nobody-7b | no model 'nobody-7b'
lm heads --model http://x/v1#y | is an endpoint, which shows no weights
lm circuit --model x --search-questions 6 | '--search-questions': 6 is not in the range x>=10
papers claims --results found --variants fan-in gpt2 | fan-in and gpt2 are both initial weights
papers claims musat chen --results found | got musat chen; expected one claim, or --variants
papers claims musat/abc-fuor-heads --results found | did you mean musat/abc-four-heads
papers report --results nowhere | no folder nowhere; --results is what
papers report --save p.pdf | --save is p.pdf; expected a name that ends in .html
depth --table five | expected a range of hops like 1..64
depth --hops 2 --task conditional | give one of --hops, --task and FACT
depth --json --hops 2 --figure x.svg | --json prints what --figure would draw
depth --figure x | ends in .svg, .pdf, .png, not x
depth --figure folder.svg | folder.svg is a folder
depth --figure x.svg --width 2 | a figure cannot be 2 inches wide; expected 5.5 to 20
"""
"""What is typed, and what the answer says."""
TRAININGS = """
train | Missing argument 'RECIPE'
train dmeo | unknown preset 'dmeo': did you mean demo?
train mine.py | mine.py is a script: `hopscope sweep mine.py` trains what it lists
train none.json | none.json is missing
train wrong.json | wrong.json: Experiment.modle: unknown field
train demo --seeds '' | --seeds is ''; expected numbers such as 0,3,5
train demo --seeds=0-7 | --seeds is '0-7'; expected numbers such as 0,3,5 or a range such as 0..7
train demo model.layrs=3 | demo has no field 'model.layrs': did you mean model.layers
train demo --model.layers 3 | no option --model.layers: did you mean model.layers=VALUE?
train demo training.lr=abc | Training.lr: expected a number, got 'abc'
train demo seeds=1 --seeds 2 | the seeds are given twice
train demo --threads 0 | threads is 0; expected 1 to
train demo --workers many | --workers is 'many'; expected a number of processes, or ray
train demo --workers 2 --pack 0 | pack is 0; expected a number of models from 1 on
train demo --workers 9999 | workers is 9999; expected 1 to
train demo --workers 1 --prolong x | --prolong goes on with one run: leave out --workers
presets --save x.json | --save writes one preset: name it
presets demo --save x.toml | expected a name that ends in .json
presets demo --save file/x.json | cannot write file/x.json
ngram train process.alphabet=50 process.parents=1,2,3 | GiB (1,397 of them for transition tables)
ngram theory process.alphabet=30 model.window=5 | too many for exact distributions: estimate
sweep sweep.py --time-limit 0 | --time-limit is 0.0; expected minutes
sweep --plan gone.py | gone.py
sweep --slurm sweep.py --shards 2 | --shards is 2; expected at most 1, one for each pack of 4
sweep --slurm sweep.py --pack 0 | pack is 0; expected a number of models from 1 on
sweep --slurm sweep.py --gpus 0.25 | --gpus is 0.25; expected a whole number with --slurm
sweep --slurm sweep.py --cpus nan | --cpus is nan; expected a whole number
sweep --slurm sweep.py --time-limit 0 | --time-limit is 0; expected 5 or more
sweep --slurm sweep.py --time-limit inf | --time-limit is inf; expected a whole number
papers run fig2 | 'fig2': did you mean musat/fig2?
papers run musat/depth --time-limit nan | --time-limit is nan; expected minutes above 0
papers run chen --draw --results mine | nothing to draw: none of
"""
MODELS = """
attention gallery/demo --examples 100000000 | positions would take about
attention gallery/demo --example -1 | --example is -1; expected 0 to 9,999
attention gallery/demo --example 1 --save x.csv | this is not a table; expected .json
circuit gallery/demo --all --save x.edges.json | --all writes a table: .json, .csv, .parquet
circuit gallery/demo --save x.svg | --save writes no figure: `--figure x.svg` draws it
attention gallery/demo --save . | expected a name that ends in .json, .csv, .parquet
attention gallery/demo --save x.foo | expected a name that ends in .json
circuit gallery/demo --seed 7 | seed is 7; gallery/demo has the seeds 0
attention nanogpt:none.pt --task repeated-tokens | none.pt does not exist
attention hf:folder.svg | hf:folder.svg needs --task
attention hf:sweep.json --task repeated-tokens | sweep.json is a file; expected a folder that
attention hf:. --task repeated-token | is repeated-token; expected repeated-tokens or a file
circuit none.json | there is no file none.json; expected a run or the file of a circuit
attention gallery/demo --task x.json | hf:FOLDER, nanogpt:FILE); gallery/demo is taken for a run
ablate gallery/demo --examples 100000000 | take fewer examples
ablate gallery/demo --head '1.0=query>value 7' | there is no role 'value 7' here; the roles are
circuit gallery/planted --save file/x.json | cannot write file/x.json: a part of the
circuit gallery/ngram | is a run of kind ngram, expected one of kind facts: `hopscope show
show gallery/planted --figure loss.svg | was not trained: it has no loss curves
ablate gallery/demo --head 1.3:qurey | there is no role 'qurey' here; the roles are
ablate gallery/demo --threads 5000 | threads is 5000; expected 1 to 1,024
evaluate gallery/demo --sample -1 | '--sample': -1 is not in the range 0<=x<=99999999
evaluate gallery/demo --examples 1 | '--examples': 1 is not in the range x>=2
ablate gallery/demo --examples 1 | '--examples': 1 is not in the range x>=2
probe gallery/demo --examples 1 | '--examples': 1 is not in the range x>=2
patch gallery/demo --examples 1 | '--examples': 1 is not in the range x>=2
baselines gallery/demo --interpolations 0 | 0 is not in the range x>=1
compare gallery/demo gallery/ngram | only runs of one kind can be compared
compare gallery/demo gallery/planted --figure x.foo | ends in
"""
OUTSIDE = """
view ./gpt2 | a model that transformers wrote is named hf:./gpt2, with --task
emergence hf:gpt2 | emergence is for runs; hf:gpt2 is one model
ablate gallery/demo --circuit-file circuit.json | is not a circuit as `hopscope circuit --save`
view gallery/demo --save v.htm | expected a name that ends in .html, or a folder
view gallery/demo --save folder.html | is a folder; expected a file
view gallery/demo --save mine.html | hopscope did not write it
view gallery/demo --save . | hopscope did not write it
view gallery/demo --save '' | '--save': it is empty; expected the name of a file or folder
view --socket s --port 80 | --socket needs neither --host nor --port
view --port 99999 | --port is 99999; expected 1 to 65,535
view --save page.html | name it, such as gallery/demo
ngram train --seeds 0..1 seeds=3 | the seeds are given twice, as --seeds and as seeds=
export gallery/demo | Missing option '--to'
export gallery/demo --to transformers | no GPT-2 computes what this model does: its in
export gallery/ngram --to transformers | expected one of kind facts
export gallery/demo --to tensorboard --save file/logs | cannot write file/logs
"""
IGNORED = """
train demo | --cpus 2 --gpus 0.5
train demo --workers 1 | --gpus 0.5
sweep sweep.json | --shards 2
sweep sweep.json --slurm | --device cpu --threads 1
view --save page | --host lab --port 80 --socket s --read-only --no-browser
circuit circuit.json | --seed 1 --step 2 --circuit-file x.json --device cpu
circuit gallery/demo | --examples 3 --force --device cpu
circuit gallery/demo --all | --seed 0 --figure x.svg
attention gallery/demo --example 1 | --examples 8 --circuit-file x.json
emergence gallery/demo --all | --seed 5
probe gallery/demo --over-training | --step 100
probe gallery/demo | --circuit-file x.json
evaluate gallery/demo | --circuit-file x.json
evaluate gallery/demo --examples 4 | --figure x.svg
show gallery/demo --config | --figure x.svg
depth | --width 6 --dpi 100
attention gallery/demo --examples 4 | --dpi 100
depth --table 1..3 | --hops 3 --order forward --single-head
presets demo --save demo.json | --json
lm ask --model smollm2-135m --formulations f3,f5 | --hops 2
export gallery/demo --to transformers | --project mine --follow
export gallery/demo --to tensorboard | --step 3
"""
"""A command, and flags that would do nothing."""
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
    for name in ("circuit.json", "file", "mine.html", "mine.py", "data.js"):
        texts[name] = "{}"
    for name, text in texts.items():
        (root / name).write_text(text)
    for name in ("folder.svg", "folder.html", "found"):
        (root / name).mkdir()
    (root / "gpt2").mkdir()
    (root / "gpt2" / "config.json").write_text("{}")
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
    for name in COMMANDS:
        needed = [p for p in load(name).params if isinstance(p, click.Argument) and p.required]
        asked = [*name.split(), *("nothing" for _ in needed)]
        first = load(name).params[0].metavar or ""
        if first.strip("[]…") == "RUN" and needed and name != "push":
            answer = hopscope(*asked, *(["--to", "tensorboard"] if name == "export" else []))
            assert is_one_line(answer), answer
            assert "no run matches 'nothing'" in answer[2]
        answer = hopscope(*asked, "--zzz")
        assert is_one_line(answer), answer
        assert "no option --zzz" in answer[2], answer
