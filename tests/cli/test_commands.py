"""The table of commands, walked from one end to the other."""

import io
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path

import pytest

from hopscope.cli import complete, completion, reference
from hopscope.cli.commands import (
    COMMANDS,
    GROUPS,
    HIDDEN,
    actions,
    always_there,
    asked,
    function_of,
)
from hopscope.cli.flags import arguments_of
from hopscope.cli.main import run
from hopscope.errors import ConfigError

DOCS = Path(__file__).parents[2] / "docs"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def table() -> complete.Table:
    """What the completion scripts hold."""
    return complete.read_table(complete.write_table(completion.table()).splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_whole(name: str, table: complete.Table, capsys: Captured) -> None:
    command = COMMANDS[name]
    assert callable(function_of(command))
    form = always_there(command)
    assert is_dataclass(form)
    assert form.__doc__
    assert not form.__doc__.startswith(f"{form.__name__}(")  # what Python writes where we do not
    assert command.summary.endswith(".")
    assert f"\n### hopscope {name}\n" in (DOCS / "reference.md").read_text()
    words = name.split(" ")
    for count in range(len(words)):
        assert complete.candidates([*words[:count], words[count][:2]], table).count(words[count])
    for argument in arguments_of(command):
        assert argument.help.split(" (")[0]
        assert "None" not in argument.value
        assert not argument.value.startswith(("{[", "[["))
        for flag in argument.flags:
            assert flag in complete.candidates([*words, flag[:3]], table)
    _help(words)
    assert f"usage: hopscope {name}" in capsys.readouterr().out


def _help(words: list[str]) -> None:
    try:
        run([*words, "--help"])
    except SystemExit as stop:
        assert not stop.code  # noqa: PT017


@pytest.mark.parametrize(
    "head",
    sorted({name.split(" ")[0] for name in COMMANDS if " " in name} - {*COMMANDS}),
)
def test_a_command_with_actions_lists_them(head: str, capsys: Captured) -> None:
    assert run([head, "--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {action.name} " in out for action in actions(head))


def test_a_command_that_does_something_itself_has_actions_all_the_same() -> None:
    assert asked(["sweep", "f.py", "--shard", "1/2"]) == (
        COMMANDS["sweep"], ["f.py", "--shard", "1/2"],
    )  # fmt: skip
    assert asked(["sweep", "plan", "f.py"]) == (COMMANDS["sweep plan"], ["f.py"])
    assert asked(["sweep", "slurm"]) == (COMMANDS["sweep slurm"], [])


def test_no_name_is_given_twice_and_help_has_all_of_them(capsys: Captured) -> None:
    assert sum(len(group.commands) for group in GROUPS) == len(COMMANDS)
    assert not {*COMMANDS} & {*HIDDEN}
    assert all((DOCS / group.page).exists() for group in GROUPS)
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert max(map(len, out.splitlines())) <= 100


def test_the_reference_page_is_what_the_commands_say() -> None:
    """`python -m hopscope.cli.reference docs/reference.md` renews it."""
    assert (DOCS / "reference.md").read_text() == reference.page()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["llm", "bnech"], "unknown action 'bnech' of llm: did you mean `hopscope llm bench`?"),
        (["bench"], "unknown command 'bench': did you mean `hopscope llm bench`?"),
        (["circuit", "drop"], "unknown action 'drop' of circuit: there are show, export"),
        (["galery"], "unknown command 'galery': did you mean `hopscope gallery`?"),
    ],
)
def test_a_slip_of_the_pen_is_answered(words: list[str], answer: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run(words)
    assert str(caught.value) == answer


def test_a_list_is_printed_where_no_action_is_named(capsys: Captured) -> None:
    run(["gallery", "list"])
    listed = capsys.readouterr().out
    run(["gallery"])
    assert capsys.readouterr().out == listed
    assert "gallery/demo" in listed


def test_the_table_is_light() -> None:
    code = "import sys, hopscope.cli.commands, hopscope.cli.complete\n"
    code += "print({'tyro', 'torch', 'pydantic', 'numpy', 'duckdb'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_complete_reads_its_table_from_the_script(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("maps\n \tRUN\t\t\n --step\tINT\t\t\n"))
    assert run(["complete", "maps", "--st"]) == 0
    assert capsys.readouterr().out == "--step\n"


RENAMED = [
    (name, old, new) for name, command in COMMANDS.items() for old, new in command.earlier.items()
]


@pytest.mark.parametrize(("name", "old", "new"), RENAMED)
def test_a_flag_of_before_is_that_of_today(name: str, old: str, new: str) -> None:
    flags = {flag for argument in arguments_of(COMMANDS[name]) for flag in argument.flags}
    assert new in flags
    assert old not in flags


def test_a_flag_of_before_works_and_says_the_new_one(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, words in enumerate((["--to", "a"], ["--to=b"])):
        asked = ["llm", "export", "--questions", "2", *words, "--seed", "3"]
        assert run(asked) == 0
        captured = capsys.readouterr()
        assert captured.err == (
            "hopscope: --to of llm export is called --out now\n"
            "hopscope: --seed of llm export is called --sample now\n"
        )
        assert captured.out.startswith(f"ruler: {'ab'[number]}/")
    assert run([*asked[:4], "--out", "c", "--sample", "3"]) == 0
    assert capsys.readouterr().err == ""
    (before,), (now,) = Path("a").iterdir(), Path("c").iterdir()
    assert before.read_bytes() == now.read_bytes()
