"""The command as a user calls it: its help, and the demo."""

import io
import sys
from pathlib import Path

import pytest
from reproducing import Said, Say

from hopscope.cli.main import run
from hopscope.configs import Experiment, Model, Retrieval, Training
from hopscope.errors import ConfigError


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


def test_other_words_for_help(said: Said) -> None:
    for words, same in (("help", "--help"), ("help llm", "llm --help"), ("-V", "--version")):
        shown = said(*words.split())
        assert shown == said(*same.split())
        assert "hopscope" in shown


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
