"""The tables for docs/lm.md, from the rows in results/lm.

hopscope show RUN … --json | jq --compact-output '.[]' > results/lm/bench.jsonl
python benchmarks/lm.py >> results/lm/speed.jsonl
python benchmarks/lm_tables.py
"""

from itertools import groupby

from rows import RESULTS, print_table, read_rows


def main() -> None:
    bench = read_rows(RESULTS / "lm" / "bench.jsonl")
    for run, rows in groupby(bench, key=lambda row: (row["run"], row["dtype"], row["seconds"])):
        print(f"\n{run[0]}, {run[1]}, {run[2] / 60:.0f} minutes\n")
        print_table(
            ("questions", "number", "accuracy", "95 %", "chance", "best", "first try",
             "acceptable", "tries"),
            [
                (
                    row["kind"], row["count"], f"{row['accuracy']:.3f}",
                    f"{row['interval'][0]:.3f} … {row['interval'][1]:.3f}",
                    f"{row['chance']:.3f}", f"{row['best']:.3f}", f"{row['first']:.4f}",
                    f"{row['acceptance']:.4f}", tries(row["tries"]),
                )
                for row in rows
            ],
        )  # fmt: skip
    speed = read_rows(RESULTS / "lm" / "speed.jsonl")
    print("\nspeed\n")
    by_kind = {(row["kind"], row["dtype"]): row for row in speed if row["what"] == "lm protocol"}
    print_table(
        ("", "tokens", *(f"{name}, {p}" for p in DTYPES for name in NAMES.values())),
        [
            (
                kind, by_kind[kind, "float32"].get("tokens", ""),
                *(by_kind[kind, p][name] for p in DTYPES for name in NAMES),
            )
            for kind in dict.fromkeys(kind for kind, _ in by_kind)
        ],
    )  # fmt: skip


def tries(number: float | None) -> str:
    return "∞" if number is None else f"{number:,.1f}"


DTYPES = ("float32", "bfloat16")
NAMES = {"exact_ms": "exact", "generate_ms": "generate", "ratio": "ratio"}


if __name__ == "__main__":
    main()
