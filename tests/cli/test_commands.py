"""The commands there are: help, completion, and pages that are made from them."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import fields
import pytest
import reference
from calling import Captured, Patch, Said, Say

import hopscope.configs
from hopscope.cli import commands
from hopscope.cli.commands import COMMANDS, GROUPS, SECTIONS, load
from hopscope.cli.main import COMPLETE, main
from hopscope.configs import Config, Experiment, Model, Retrieval, Training
from hopscope.lm.known import KNOWN
from hopscope.papers import presets
from hopscope.papers.registry import PAPERS
from hopscope.store import Store, gallery
from hopscope.store.tables import TABLES

DOCS = Path(__file__).parents[2] / "docs"


def test_every_command_has_help_that_fits(said: Said, monkeypatch: Patch) -> None:
    monkeypatch.setattr(commands.click.formatting, "FORCED_WIDTH", 60)
    for name in COMMANDS:
        out = said(*name.split(), "--help")
        assert out.startswith(f"Usage: hopscope {name} ")
        assert max(map(len, out.splitlines())) <= 60, name
        for each in load(name).params:
            text = each.help if isinstance(each, click.Option) else "in the command's own text."
            assert text, (name, each.name)
            assert text.rstrip(")").endswith((".", "?")), (name, text)


def test_help_has_every_name_once(said: Said) -> None:
    assert sum(len(section.commands) for section in SECTIONS) == len(COMMANDS)
    assert all((DOCS / section.page).exists() for section in SECTIONS)
    out = said("--help")
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    for word in GROUPS:
        out = said(word, "--help")
        assert all(f"\n  {name} " in out for name in COMMANDS if name.startswith(f"{word} "))


def test_the_help_of_sql_names_every_table(said: Said) -> None:
    out = said("sql", "--help")
    assert [each.name for each in TABLES if f"`{each.name}`" not in out] == []


def test_other_words_mean_the_same(said: Said) -> None:
    for words, same in {"": "--help", "help": "--help", "help lm": "lm -h", "lm": "lm -h",
                        "-V": "--version"}.items():  # fmt: skip
        shown = said(*words.split())
        assert shown == said(*same.split())
        assert "hopscope" in shown


def test_pages_are_what_commands_and_configs_say() -> None:
    """`python docs/_building/reference.py docs/reference.md` renews the one; fields likewise."""
    assert (DOCS / "reference.md").read_text() == reference.page()
    assert (DOCS / "fields.md").read_text() == fields.page()


WITHOUT_FIELDS = {"Config", "FactTask", "VectorTask", "Recipe", "Interface"}
"""Bases, and what follows from a task: nobody writes them."""


def test_every_field_of_every_config_says_what_it_means() -> None:
    public = [getattr(hopscope.configs, name) for name in hopscope.configs.__all__]
    there = {each for each in public if isinstance(each, type) and issubclass(each, Config)}
    assert {each for each in there if each.__name__ not in WITHOUT_FIELDS} == {*fields.CONFIGS}
    for config in fields.CONFIGS:
        assert all(text.endswith((".", "?", ")")) for text in fields.meanings(config).values())


After = Callable[..., list[str]]


@pytest.fixture
def after(root: Path, monkeypatch: Patch, capsys: Captured) -> After:
    """What may come after some words, as bash asks."""
    monkeypatch.delenv("HOPSCOPE_STORE")
    monkeypatch.setenv(COMPLETE, "bash_complete")

    def asked(*words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", " ".join(["hopscope", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            main()
        return [line.partition(",")[2] for line in capsys.readouterr().out.split()]

    return asked


def test_what_comes_next(after: After) -> None:
    for line, expected in {
        "l": "lm",
        "lm ": "ask heads circuit claims export list pull",
        "show --fi": "--figure",
        "completion ": "bash zsh fish",
        "train demo model.lay": "model.layers=",
        "export x --to ten": "tensorboard",
        "attention x --no-such-flag": "",
        "help tr": "train",
        "help papers re": "report",
        "nope tr": "",
        "papers nope r": "",
    }.items():
        assert after(*line.split(" ")) == expected.split(), line


def test_names_of_all_kinds(after: After, tiny: Experiment, monkeypatch: Patch) -> None:
    assert after("train", "") == after("presets", "") == sorted(presets())
    assert after("papers", "claims", "") == sorted(PAPERS.claims)
    assert after("papers", "run", "") == sorted(PAPERS.experiments)
    assert after("gallery", "--copy", "") == gallery.names()
    assert after("lm", "pull", "") == sorted(KNOWN)
    shipped = [f"gallery/{name}" for name in gallery.names()]
    assert after("attention", "") == shipped  # and no word about a store that is not there
    for root, seed in (("runs", 1), ("elsewhere", 2)):
        Store(root).create(tiny.model_copy(update={"seeds": (seed, seed + 9)}))
    assert after("attention", "") == sorted([*Store().names(), *shipped])
    monkeypatch.setenv("HOPSCOPE_STORE", "elsewhere")
    assert after("show", "--store", "runs", "r") == Store("runs").names()
    (name,) = Store("elsewhere").names()
    assert after("train", "demo", "--prolong", "r") == [name]
    Store("elsewhere").tag(name, "first")
    assert after("show", "fi") == ["first"]
    Path("elsewhere/tags.json").write_text("[1]")
    assert after("show", "fi") == []
    assert after("rm", name, "r") == [name]  # there may be several


def test_bash_is_answered(tmp_path: Path, said: Said) -> None:
    for shell in ("zsh", "fish"):
        assert COMPLETE in said("completion", shell)
    (tmp_path / "hopscope").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hopscope "$@"\n')
    (tmp_path / "hopscope").chmod(0o755)
    asked = (
        "COMP_WORDS=(hopscope attention gallery/pl); COMP_CWORD=2; _hopscope_completion hopscope"
    )
    script = f'{said("completion", "bash")}\n{asked}; echo "${{COMPREPLY[@]}}"\n'
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("gallery/planted\n", "")


@pytest.mark.slow
def test_the_demo_is_one_page(root: Path, hopscope: Say, monkeypatch: Patch) -> None:
    from hopscope.papers import tasks
    from hopscope.papers.preset import Preset

    easy = Experiment(
        task=Retrieval(hops=1, chains=2, position="pair", base=10),
        model=Model(layers=2, heads=2, d_model=32, init="fan-in"),
        training=Training(
            steps=400, batch=32, lr=4e-3, warmup=50, schedule="cosine", checkpoint_every=100,
            validation_examples=64,
        ),
    )  # fmt: skip
    monkeypatch.setattr(tasks, "presets", lambda: {"demo": Preset("demo", "easy", easy, {})})
    code, out, _ = hopscope("demo")
    assert code == 0
    for words in ("chance", "value 0 → query", "emerged at step"):
        assert words in out
    (page,) = (root / "reports").iterdir()
    assert str(page.relative_to(root)) in out
