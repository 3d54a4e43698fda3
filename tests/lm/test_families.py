"""Random models of other families: every command runs to its honest end."""

import json
from pathlib import Path

import pytest
from calling import Say
from families import made

from hopscope.lm.model import LanguageModel

ROOM = 160
FAMILIES = {
    "gpt2": {"n_positions": ROOM},
    "qwen3": {"max_position_embeddings": ROOM},
    "gemma3_text": {"max_position_embeddings": ROOM, "sliding_window": ROOM},
    "gpt_neox": {"max_position_embeddings": ROOM},
    "gpt_oss": {"max_position_embeddings": ROOM, "sliding_window": ROOM},
    "opt": {"max_position_embeddings": ROOM},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_random_model_is_asked_read_and_refused(
    family: str, hopscope: Say, root: Path, tmp_path: Path, tiny: LanguageModel
) -> None:
    model = made(family, vocab_size=len(tiny.tokenizer), **FAMILIES[family])
    model.save_pretrained(tmp_path / family)
    tiny.tokenizer.save_pretrained(tmp_path / family)
    here = ["--model", str(tmp_path / family), "--template", "raw"]
    for dtype in ("float32", "bfloat16"):
        words = "lm ask --questions 4 --formulations f1 --hops 1 --dtype".split()
        code, out, err = hopscope(*words, dtype, *here, "--store", str(root / dtype))
        assert code == 0, err
        assert "question 4 of 4" in out
    code, out, err = hopscope(*"lm heads --hops 1 --questions 10 --json".split(), *here)
    assert code == 0, err
    assert json.loads(out)["questions"] == 10
    words = "lm circuit --hops 1 --questions 40 --search-questions 10".split()
    code, _, err = hopscope(*words, *here)
    assert (code, len(err.strip().splitlines())) == (2, 1), err
    assert "answers equations-d1 at chance" in err
