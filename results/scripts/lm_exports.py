"""Exported questions in the tools they are for: do lm-evaluation-harness and inspect_ai run them?

Both live in an environment of their own, so that this package need not depend on them:

    python3 -m venv TOOLS && TOOLS/bin/pip install inspect-ai lm-eval
    python results/scripts/lm_exports.py --tools TOOLS/bin [--questions 20]

No language model is asked: lm-eval's `dummy` guesses, inspect's mock chatters (accuracy 0), and
a mock that is told half of the answers comes to an accuracy of one half. A JSON row for each.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from hopscope.configs import Prompts
from hopscope.lm.export import Tool, exported, task_name
from hopscope.lm.prompts import questions

OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "NO_COLOR": "1"}

MOCK = """
import json, sys
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def say(input, *_):
    output = ModelOutput.from_content("mockllm/model", said[input[-1].text])
    output.usage = ModelUsage()  # else the mock fetches a tokenizer to count with
    return output

task, logs, said = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
model = get_model("mockllm/model", custom_outputs=say)
eval(task, model=model, log_dir=logs, log_format="json", display="none")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=20)
    chosen = parser.parse_args()
    prompts = Prompts(formulation="equations")
    for run in (lm_eval_guesses, inspect_chatter, inspect_told):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            row = run(chosen.tools.absolute(), prompts, chosen.questions, Path(folder))
            row["seconds"] = round(time.perf_counter() - start, 1)
            print(json.dumps({"run": run.__name__, **row}), flush=True)


def lm_eval_guesses(tools: Path, prompts: Prompts, count: int, folder: Path) -> dict[str, object]:
    name = written("lm-eval", prompts, count, folder)
    run(folder, tools / "lm_eval", "--model", "dummy", "--tasks", name, "--include_path", folder,
        "--output_path", folder / "results")  # fmt: skip
    (path,) = (folder / "results").rglob("results_*.json")
    log = json.loads(path.read_text())
    return {"samples": log["n-samples"][name], "results": log["results"][name]}


def inspect_chatter(tools: Path, prompts: Prompts, count: int, folder: Path) -> dict[str, object]:
    """The mock says what is no answer."""
    said = {each.prompt: "Default output" for each in questions(prompts, 0, count)}
    return inspect_mock(tools, prompts, said, folder)


def inspect_told(tools: Path, prompts: Prompts, count: int, folder: Path) -> dict[str, object]:
    """The mock answers every other question rightly, in bold; else it says a wrong answer."""
    said = {}
    for each in questions(prompts, 0, count):
        wrong = next(answer for answer in each.acceptable if answer != each.correct)
        said[each.prompt] = wrong if each.index % 2 else f"**{each.correct}.**"
    return inspect_mock(tools, prompts, said, folder)


def inspect_mock(
    tools: Path, prompts: Prompts, said: dict[str, str], folder: Path
) -> dict[str, object]:
    name = written("inspect", prompts, len(said), folder)
    run(folder, tools / "python", "-c", MOCK, f"{name}.py", folder / "logs", json.dumps(said))
    return inspect_log(folder / "logs")


def written(tool: Tool, prompts: Prompts, count: int, folder: Path) -> str:
    """The task's name, its files written."""
    for name, text in exported(tool, prompts, 0, count, str(folder)).items():
        (folder / name).write_text(text)
    return task_name(prompts, 0)


def run(folder: Path, *words: str | Path) -> None:
    """In the folder; what the tool says is shown only if it fails."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=os.environ | OFFLINE,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{words[0]} ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def inspect_log(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("*.json")
    log = json.loads(path.read_text())
    if log["status"] != "success":
        raise SystemExit(f"inspect: {log['status']}: {log['error']['message']}")
    scores = [next(iter(each["scores"].values()))["value"] for each in log["samples"]]
    metrics = log["results"]["scores"][0]["metrics"]
    return {
        "samples": len(scores),
        "values": {value: scores.count(value) for value in sorted(set(scores))},
        "results": {name: metric["value"] for name, metric in metrics.items()},
    }


if __name__ == "__main__":
    main()
