"""The table of commands, walked from one end to the other."""

import contextlib
import io
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

DOCS = Path(__file__).parents[2] / "docs"
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def table() -> complete.Table:
    """What the completion scripts hold."""
    return complete.read_table(complete.write_table(completion.table()).splitlines())


def test_every_command_is_whole(table: complete.Table, capsys: Captured) -> None:
    reference_page = (DOCS / "reference.md").read_text()
    for name, command in COMMANDS.items():
        assert callable(function_of(command))
        form = always_there(command)
        assert form.__doc__
        assert not form.__doc__.startswith(f"{form.__name__}(")  # what Python writes
        assert f"\n### hopscope {name}\n" in reference_page
        words = name.split(" ")
        for count, word in enumerate(words):
            assert complete.candidates([*words[:count], word[:2]], table).count(word) == 1, name
        arguments = arguments_of(command)
        for argument in arguments:
            assert argument.help.split(" (")[0], (name, argument)
            assert "None" not in argument.value
            assert not argument.value.startswith(("{[", "[["))
            for flag in argument.flags:
                assert flag in complete.candidates([*words, flag[:3]], table)
        flags = {flag for argument in arguments for flag in argument.flags}
        assert {*command.earlier.values()} <= flags
        assert not {*command.earlier} & flags
        with contextlib.suppress(SystemExit):
            run([*words, "--help"])
        assert f"usage: hopscope {name}" in capsys.readouterr().out


def test_help_has_every_name_once(capsys: Captured) -> None:
    assert sum(len(group.commands) for group in GROUPS) == len(COMMANDS)
    assert not {*COMMANDS} & {*HIDDEN}
    assert all((DOCS / group.page).exists() for group in GROUPS)
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert max(map(len, out.splitlines())) <= 100
    for head in {name.split(" ")[0] for name in COMMANDS if " " in name} - {*COMMANDS}:
        assert run([head, "--help"]) == 0
        out = capsys.readouterr().out
        assert all(f"\n  {action.name} " in out for action in actions(head))


def test_a_command_that_does_something_itself_has_actions_all_the_same() -> None:
    assert asked(["sweep", "f.py", "--shard", "1/2"]) == (
        COMMANDS["sweep"], ["f.py", "--shard", "1/2"],
    )  # fmt: skip
    assert asked(["sweep", "plan", "f.py"]) == (COMMANDS["sweep plan"], ["f.py"])
    assert asked(["sweep", "slurm"]) == (COMMANDS["sweep slurm"], [])


def test_the_reference_page_is_what_the_commands_say() -> None:
    """`python -m hopscope.cli.reference docs/reference.md` renews it."""
    assert (DOCS / "reference.md").read_text() == reference.page()


def test_a_list_is_printed_where_no_action_is_named(capsys: Captured) -> None:
    run(["gallery", "list"])
    listed = capsys.readouterr().out
    run(["gallery"])
    assert capsys.readouterr().out == listed
    assert "gallery/demo" in listed


def test_complete_reads_its_table_from_the_script(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("maps\n \tRUN\t\t\n --step\tINT\t\t\n"))
    assert run(["complete", "maps", "--st"]) == 0
    assert capsys.readouterr().out == "--step\n"


def test_a_flag_of_before_works_and_says_the_new_one(
    capsys: Captured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, words in enumerate((["--to", "a"], ["--to=b"])):
        asked = ["llm", "export", "--questions", "2", *words, "--seed", "3"]
        assert run(asked) == 0
        captured = capsys.readouterr()
        assert "--to of llm export is called --out now\n" in captured.err
        assert "--seed of llm export is called --sample now\n" in captured.err
        assert captured.out.startswith(f"ruler: {'ab'[number]}/")
    assert run([*asked[:4], "--out", "c", "--sample", "3"]) == 0
    assert capsys.readouterr().err == ""
    (before,), (now,) = Path("a").iterdir(), Path("c").iterdir()
    assert before.read_bytes() == now.read_bytes()
