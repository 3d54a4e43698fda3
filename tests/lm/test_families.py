"""Random models of other families: every command runs to its honest end."""

import json
from pathlib import Path

import pytest
from calling import Say
from families import made

from hopscope.lm.model import LanguageModel

ROOM = 160


@pytest.mark.parametrize("family", ["gemma3_text", "gpt_oss"])
def test_a_random_model_is_asked_read_and_refused(
    family: str, hopscope: Say, root: Path, tmp_path: Path, tiny: LanguageModel
) -> None:
    sizes = {"max_position_embeddings": ROOM, "sliding_window": ROOM}
    model = made(family, vocab_size=len(tiny.tokenizer), **sizes)
    model.save_pretrained(tmp_path / family)
    tiny.tokenizer.save_pretrained(tmp_path / family)
    here = ["--model", str(tmp_path / family), "--template", "raw"]
    words = "lm ask --questions 4 --formulations f1 --hops 1 --dtype bfloat16".split()
    code, out, err = hopscope(*words, *here, "--store", str(root))
    assert code == 0, err
    assert "question 4 of 4" in out
    code, out, err = hopscope(*"lm heads --hops 1 --questions 10 --json".split(), *here)
    assert code == 0, err
    assert json.loads(out)["questions"] == 10
    words = "lm circuit --hops 1 --questions 40 --search-questions 10".split()
    code, _, err = hopscope(*words, *here)
    assert (code, len(err.strip().splitlines())) == (2, 1), err
    assert "answers equations-d1 at chance" in err
