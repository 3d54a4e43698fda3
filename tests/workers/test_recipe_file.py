"""Files of recipes: what they may hold, and the one line for each way to get them wrong."""

from pathlib import Path

import pytest

from hopscope.configs import Experiment, NgramExperiment
from hopscope.errors import ConfigError, HopscopeError
from hopscope.workers import recipe_file
from hopscope.workers.recipe_file import read_recipes

HEAD = "from hopscope import Experiment, NgramExperiment\n"


def written(folder: Path, text: str, name: str = "sweep.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_files_list_or_yield_recipes_of_any_kind(tmp_path: Path) -> None:
    ones, ngram, each = (
        [Experiment(seeds=(seed,)) for seed in (0, 1)],
        NgramExperiment(),
        "for s in",
    )
    listed = f"recipes = [Experiment(seeds=(s,)) {each} (0, 1)] + [NgramExperiment()]"
    yielded = (
        f"def recipes():\n {each} (0, 1):\n  yield Experiment(seeds=(s,))\n yield NgramExperiment()"
    )
    texts = ",".join(recipe.to_file() for recipe in (*ones, ngram))
    for name, text, expected in (
        ("list.py", HEAD + listed, (*ones, ngram)),
        ("yield.py", HEAD + yielded, (*ones, ngram)),
        ("list.json", f"[{texts}]", (*ones, ngram)),
        ("one.json", ngram.to_file(), (ngram,)),
    ):
        assert read_recipes(written(tmp_path, text, name)) == expected, name


def test_a_file_imports_its_neighbours_and_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(tmp_path, "from hopscope import Experiment\nSEEDS = (5, 6)", "neighbour_of_sweep.py")
    body = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "from neighbour_of_sweep import SEEDS, Experiment\nprint('reading')\n"
        "@dataclass\nclass Each:\n    seed: int\n"
        "recipes = [Experiment(seeds=(Each(seed).seed,)) for seed in SEEDS]"
    )
    path = written(tmp_path, body)
    assert [recipe.seeds for recipe in read_recipes(path)] == [(5,), (6,)]
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "reading\n")  # stdout is for the answer
    assert sorted(each.name for each in tmp_path.iterdir()) == ["neighbour_of_sweep.py", "sweep.py"]


WRONG = (
    ("recipes = [", r"sweep.py, line 2: SyntaxError: '\[' was never closed"),
    ("\nimport nobody_has_this", "sweep.py, line 3: ModuleNotFoundError: No module named"),
    ("recipes = [1 / 0]", "sweep.py, line 2: ZeroDivisionError: division by zero"),
    ("raise SystemExit(3)", "sweep.py, line 2: SystemExit: 3"),
    ("recipes = [Experiment(seeds=(1, 1))]", "sweep.py, line 2: Experiment.seeds"),
    (
        "def recipes():\n    yield Experiment()\n    yield Experiment(nothing=1)",
        "sweep.py, line 4: Experiment.nothing",
    ),
    ("recipe = [Experiment()]", "sweep.py has no `recipes`; expected a list"),
    ("recipes = 'demo'", "sweep.py: `recipes` is 'demo'; expected a list"),
    ("recipes = Experiment()", "sweep.py: `recipes` is Experiment.*; expected a list"),
    ("recipes = [Experiment(), 'demo']", "sweep.py, recipe 2: got 'demo'; expected a recipe"),
    ("recipes = []", "sweep.py lists no recipe; expected at least one"),
    (
        "recipes = [Experiment(), NgramExperiment(), Experiment()]",
        "sweep.py: recipes 1 and 3 are the same run, retrieval-d3-",
    ),
)
WRONG_JSON = (
    ("[", r"bad.json: a recipe is JSON, and this is not"),
    ('[{"kind": "facts"}, 7]', "bad.json, recipe 2: a recipe is a JSON object; got 7"),
    ('[{"kind": "facts"}, {"kind": "x"}]', "bad.json, recipe 2: a recipe's kind is 'x'"),
    ("[]", "bad.json lists no recipe"),
    ('[{"kind": "facts"}, {"kind": "facts"}]', "bad.json: recipes 1 and 2 are the same run"),
)


def test_what_is_wrong_with_a_file_is_one_line(tmp_path: Path) -> None:
    paths = [
        (written(tmp_path, HEAD + body, f"{n}-sweep.py"), line)
        for n, (body, line) in enumerate(WRONG)
    ]
    paths += [
        (written(tmp_path, text, f"{n}-bad.json"), line)
        for n, (text, line) in enumerate(WRONG_JSON)
    ]
    for path, problem in paths:
        with pytest.raises(ConfigError, match=problem) as caught:
            read_recipes(path)
        assert "\n" not in str(caught.value), problem


def test_other_files_and_endless_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="plan is not a file of recipes; expected FILE.py"):
        read_recipes(Path("plan"))
    with pytest.raises(HopscopeError, match="gone.py"):
        read_recipes(tmp_path / "gone.py")
    monkeypatch.setattr(recipe_file, "MOST", 9)
    endless = "def recipes():\n    while True:\n        yield Experiment()"
    with pytest.raises(ConfigError, match="yields more than 9 recipes"):
        read_recipes(written(tmp_path, HEAD + endless))
