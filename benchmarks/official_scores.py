"""Compare this project's TIER scores with the official ones, row by row, and list where they differ and how often.

    python benchmarks/official_scores.py --data DIR            # the folder with the official depthbench files
    python benchmarks/official_scores.py --data DIR --json
    python benchmarks/official_scores.py --data DIR --reasons   # rows by the reason that docs/divergences.md gives

``tier`` is compared with the literal reading of the paper (``paper_text_total``), ``tier-released`` with the released
code's components (``scores.paper``), both to 1e-9. Masked rows are those whose calls are not in the recording.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import callwright as cw

PAGE = Path(__file__).resolve().parent.parent / "docs" / "divergences.md"
FORMS = ("json", "xml", "direct")
#: This project's component names and the official columns.
COLUMNS = {
    "format": "format",
    "names": "name",
    "parameters": "param",
    "types": "dtype",
    "execution": "exec",
    "answer": "answer",
}


def official_rows(data: Path) -> Iterator[dict[str, Any]]:
    for name in ("reference_scores.jsonl.gz", "reference_scores.jsonl"):
        path = data / name
        if path.is_file():
            data_bytes = path.read_bytes()
            text = (gzip.decompress(data_bytes) if path.suffix == ".gz" else data_bytes).decode("utf-8")
            yield from (json.loads(line) for line in text.splitlines())
            return
    raise SystemExit(f"error: {data} holds no reference_scores.jsonl")


def compare(data: Path) -> dict[str, Any]:
    """Counts of rows, of differing rows and of masked rows by recipe, form and kind of perturbation."""
    corpus = cw.corpus("depthbench-official", data=str(data))
    parsers = {form: cw.parser(form) for form in FORMS}
    tier, released = cw.reward("tier"), cw.reward("tier-released")
    rows: Counter[tuple[str, str]] = Counter()
    differing: Counter[tuple[str, str, str]] = Counter()
    masked: Counter[tuple[str, str, str]] = Counter()
    for row in official_rows(data):
        form, kind, scores = row["ir"], row["kind"], row["scores"]
        rows[form, kind] += 1
        attempt = cw.Attempt(corpus.task(row["qid"]), row["completion"], parsers[form])
        ours = tier.score_attempt(attempt)
        if ours.total is None:
            masked["tier", form, kind] += 1
        elif abs(ours.total - scores["paper_text_total"]) > 1e-9:
            differing["tier", form, kind] += 1
        theirs = scores["released"] if scores["paper"] == "same" else scores["paper"]
        ours = released.score_attempt(attempt)
        if ours.total is None:
            masked["tier-released", form, kind] += 1
            continue
        same = all(abs(weighted.contribution - theirs[COLUMNS[name]]) <= 1e-9 for name, weighted in ours.scores.items())
        if not same or abs(ours.total - theirs["total"]) > 1e-9:
            differing["tier-released", form, kind] += 1
    return {"rows": rows, "differing": differing, "masked": masked}


def by_reason(found: dict[str, Any], page: Path) -> Counter[tuple[str, str]]:
    """Rows that differ or are masked, by recipe and the reason on the page; an empty reason where it gives none."""
    row = re.compile(r"^\| (tier|tier-released) \| (\w+) \| (\w+) \| \d+ \| \d+ \| (.+) \|$", re.MULTILINE)
    reasons = {tuple(key): why for *key, why in row.findall(page.read_text(encoding="utf-8"))}
    counts: Counter[tuple[str, str]] = Counter()
    for part in ("differing", "masked"):
        for key, number in found[part].items():
            counts[key[0], reasons.get(key, "")] += number
    return counts


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--reasons", action="store_true")
    options = arguments.parse_args()
    found = compare(options.data)
    if options.json:
        print(json.dumps({part: [[*key, count] for key, count in found[part].items()] for part in found}))
        return
    if options.reasons:
        total = sum(found["rows"].values())
        counts = by_reason(found, PAGE)
        for recipe in ("tier", "tier-released"):
            listed = [(number, why) for (of, why), number in counts.most_common() if of == recipe]
            print(f"\n{recipe}: {total} rows, {total - sum(number for number, _ in listed)} equal")
            for number, why in listed:
                print(f"  {number:4}  {why or 'no reason is given'}")
        return
    for recipe in ("tier", "tier-released"):
        for form in FORMS:
            total = sum(count for (a_form, _), count in found["rows"].items() if a_form == form)
            off = {key[2]: n for key, n in found["differing"].items() if key[:2] == (recipe, form)}
            gone = {key[2]: n for key, n in found["masked"].items() if key[:2] == (recipe, form)}
            equal = total - sum(off.values()) - sum(gone.values())
            print(f"\n{recipe}, {form}: {total} rows")
            print(f"  {equal} equal, {sum(off.values())} differ, {sum(gone.values())} masked")
            for kind in sorted(off.keys() | gone.keys()):
                of = found["rows"][form, kind]
                print(f"  {kind:28} {off.get(kind, 0):4} differ  {gone.get(kind, 0):4} masked  of {of:4}")


if __name__ == "__main__":
    main()
