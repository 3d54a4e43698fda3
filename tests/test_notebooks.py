"""Tutorials as a reader runs them: as notebooks, twice in a folder, or without what they need."""

from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from pages import ROOT, blocks


def cells(name: str) -> list[str]:
    """The code of a tutorial, cell by cell."""
    texts = blocks(ROOT / "docs" / "tutorials" / f"{name}.md", "ipython3")
    return ["\n".join(line for line in text.splitlines() if line[:1] != ":") for text in texts]


@pytest.mark.slow
def test_a_tutorial_is_run_twice_in_one_folder(tmp_path: Path) -> None:
    """The second time the runs are there, and what is shown is the same."""
    shown = []
    for _ in range(2):
        made = [nbformat.v4.new_code_cell(text) for text in cells("a_sweep_and_sql")]
        notebook = nbformat.v4.new_notebook(cells=made)
        folder = {"metadata": {"path": str(tmp_path)}}
        NotebookClient(notebook, resources=folder, timeout=600).execute()
        outputs = [out for cell in made for out in cell.outputs]
        answers = [out for out in outputs if out.output_type == "execute_result"]
        shown.append([out.data["text/plain"] for out in answers])
    assert shown[0] == shown[1]


def test_without_its_extra_a_tutorial_says_in_a_line_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install, first, *_ = cells("your_own_model")
    assert "pip install -q 'hopscope[bridges]'" in install
    monkeypatch.setattr(
        "importlib.util.find_spec",
        lambda name: None if name == "transformer_lens" else find_spec(name),
    )
    with pytest.raises(SystemExit, match=r"^transformer_lens is missing: pip install "):
        exec(f"from importlib.util import find_spec\n{first}", {})
