"""Leave-one-source-out score of the signatures: ``python -m tests.benchmarks.leave_one_out``.

For each source of a reported failure or measured log, patterns that match nothing but texts of that source are
taken away, and the texts of that source are diagnosed again. Messages written down from public reports count as one
source each file.
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from pathlib import Path

from maple_parsl.diagnosis import LogSource, diagnose
from maple_parsl.diagnosis.engine import PatternSet
from maple_parsl.diagnosis.signature import Signatures, load_signatures

CASES = Path(__file__).parents[1] / "cases"


def texts() -> dict[str, list[tuple[str, str, bool]]]:
    """By source: text, class expected, whether it is a class of script checks."""
    found: dict[str, list[tuple[str, str, bool]]] = defaultdict(list)
    for line in (CASES / "failures.jsonl").read_text().splitlines():
        record = json.loads(line)
        source = "/".join((record["source_url"] or record["signature"]).split("/")[2:5]) or record["signature"]
        found[source].append((record["signature"], record["error_class"], True))
    for folder in sorted((CASES / "logs").iterdir()):
        case = json.loads((folder / "case.json").read_text())
        names = ("stdout.log", "stderr.log", "sbatch_output.txt")
        text = "\n".join((folder / name).read_text(errors="replace") for name in names if (folder / name).exists())
        found[folder.name].append((text, case["class"], False))
    for line in (CASES / "measured.jsonl").read_text().splitlines():
        case = json.loads(line)
        found[f"measured/{case['name']}"].append((case["log"], case["class"], False))
    return found


def main() -> None:
    signatures = load_signatures()
    patterns = sorted({pattern for entry in signatures.failure for pattern in entry.any})
    matcher = PatternSet(patterns)
    by_source = texts()
    holders: dict[str, set[str]] = defaultdict(set)
    for source, items in by_source.items():
        for text, _, _ in items:
            for line in text.splitlines():
                for index in matcher.matches(line.encode()):
                    holders[patterns[index]].add(source)
    for file in ("messages.toml", "messages_unseen.toml"):
        for texts_written in tomllib.loads((CASES / file).read_text()).values():
            for text in texts_written:
                for line in text.splitlines():
                    for index in matcher.matches(line.encode()):
                        holders[patterns[index]].add(file)
    score: dict[bool, list[int]] = {False: [0, 0, 0, 0], True: [0, 0, 0, 0]}
    for source, items in by_source.items():
        gone = {pattern for pattern, sources in holders.items() if sources == {source}}
        left = _without(signatures, gone)
        for text, expected, of_scripts in items:
            row = score[of_scripts]
            row[0] += 1
            for place, known in ((1, signatures), (2, left)):
                causes = diagnose([LogSource.of_text("log", text)], signatures=known).causes
                if of_scripts:
                    row[place] += bool(causes) and expected in causes[0].script_classes
                else:
                    row[place] += bool(causes) and causes[0].fault_class == expected
            row[3] += bool(diagnose([LogSource.of_text("log", text)], signatures=signatures).causes)
    for of_scripts, (total, whole, out, named) in score.items():
        what = "reported failures (a choice with the right class)" if of_scripts else "measured logs, outputs alone"
        print(f"{what}: {whole} of {total}; leaving the source out: {out}; recognised at all: {named}")


def _without(signatures: Signatures, gone: set[str]) -> Signatures:
    kept = []
    for entry in signatures.failure:
        patterns = tuple(pattern for pattern in entry.any if pattern not in gone)
        if patterns:
            kept.append(entry.model_copy(update={"any": patterns}))
    return signatures.model_copy(update={"failure": tuple(kept)})


if __name__ == "__main__":
    main()
