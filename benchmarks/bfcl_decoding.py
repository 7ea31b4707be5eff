"""Java and JavaScript calls that were written as text, decoded here and by BFCL's own parsers.

    python -m venv /tmp/parsers
    /tmp/parsers/bin/pip install tree_sitter==0.21.3 tree-sitter-java==0.21.0 tree-sitter-javascript==0.21.4
    python benchmarks/bfcl_decoding.py --interpreter /tmp/parsers/bin/python \\
        --wheel bfcl_eval-2025.8.6.2-py3-none-any.whl

The official parsers run in the other interpreter: they need grammars that this project does without. Texts are the gold
calls of both categories as a model writes them, and mutations of these. Of every text it is told whether both decode
it, whether to the same calls, and whether the verdict of the checker is the same. Exits with 1 where a gold call
differs.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

from callwright_plugins.bfcl.multi_turn.decoding import NotDecoded
from callwright_plugins.bfcl.reading import folder_of
from callwright_plugins.bfcl.single_turn.answers import decoded_text
from callwright_plugins.bfcl.single_turn.suite import SingleTurn, calls_of, language_of
from callwright_plugins.bfcl.versions import VERSIONS

#: What the other interpreter runs: a line of JSON in, a line out.
OFFICIAL = """
import importlib.util, json, sys
def load(name):
    spec = importlib.util.spec_from_file_location(name, sys.argv[1] + "/" + name + ".py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
java, javascript = load("java_parser"), load("js_parser")
for line in sys.stdin:
    language, text = json.loads(line)
    text = text.strip("`\\n ")
    text = text if text.startswith("[") else "[" + text
    text = text if text.endswith("]") else text + "]"
    parse = java.parse_java_function_call if language == "Java" else javascript.parse_javascript_function_call
    try:
        found = {"calls": [{k: {str(n): v for n, v in a.items()} for k, a in one.items()} for one in parse(text[1:-1])]}
    except Exception as error:
        found = {"error": type(error).__name__}
    print(json.dumps(found), flush=True)
"""
#: What needs no quotes: names, numbers, and whatever has brackets.
SOURCE = re.compile(r"[A-Za-z_$][\w$.]*|-?\d+(\.\d+)?|.*[\[{(].*", re.DOTALL)
SIGNS = "()[]{}<>,;:=\"'\\ .+-0a\n"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--wheel", type=Path, required=True)
    options.add_argument("--interpreter", required=True)
    options.add_argument("--mutants", type=int, default=20, help="of each gold call")
    options.add_argument("--shown", type=int, default=10)
    given = options.parse_args()
    version = "v3" if "2025" in given.wheel.name else "v4"
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(given.wheel) as archive:
        archive.extractall(folder)
        return compared(Path(folder), version, given)


def compared(folder: Path, version: str, given: argparse.Namespace) -> int:
    suite = SingleTurn(version, folder_of(str(folder / "bfcl_eval" / "data"), VERSIONS[version]))
    texts = list(written(suite, given.mutants, random.Random(0)))
    parsers = folder / "bfcl_eval" / "model_handler" / "parser"
    if not parsers.is_dir():
        parsers = next(folder.rglob("java_parser.py")).parent
    lines = "".join(json.dumps([language, text]) + "\n" for _, _, language, text in texts)
    answered = subprocess.run(
        [given.interpreter, "-c", OFFICIAL, str(parsers)], input=lines, capture_output=True, text=True, check=True
    )
    theirs = [json.loads(line) for line in answered.stdout.splitlines()]
    counts: Counter[tuple[str, str]] = Counter()
    shown = bad = 0
    for (key, kind, language, text), official in zip(texts, theirs, strict=True):
        try:
            ours: Any = {"calls": decoded_text(text, version, language)}  # type: ignore[arg-type]
        except NotDecoded:
            ours = {"error": "NotDecoded"}
        verdicts = [
            suite.rules(key).error(one["calls"]) if "calls" in one else "not decoded" for one in (ours, official)
        ]
        same = ours == official if "calls" in official else "error" in ours
        state = "same calls" if same else "same verdict" if verdicts[0] == verdicts[1] else "another verdict"
        counts[kind, state] += 1
        if state == "another verdict":
            bad += kind == "gold"
            if shown < given.shown:
                shown += 1
                print(
                    f"{key} {language} {text!r}\n  here     {ours} {verdicts[0]!r}\n"
                    f"  official {official} {verdicts[1]!r}"
                )
    for (kind, state), count in sorted(counts.items()):
        print(f"{kind:8} {state:16} {count:6,}")
    return 1 if bad else 0


def written(suite: SingleTurn, mutants: int, draw: random.Random) -> Any:
    """``(id, kind, language, text)``: each gold call as a text, and some with signs put in, taken out or changed."""
    for entry in suite.entries.values():
        language = language_of(entry.category)
        if language == "Python":
            continue
        task = next(task for task in suite.tasks(entry.category) if task.id == entry.id)
        assert task.program is not None
        calls = calls_of(task.program, task.facts["names"])
        text = "[" + ", ".join(called(one, entry, language) for one in calls) + "]"
        yield entry.id, "gold", language, text
        for _ in range(mutants):
            place, sign = draw.randrange(1, len(text) - 1), draw.choice(SIGNS)
            ways = (text[:place] + sign + text[place:], text[:place] + text[place + 1 :])
            yield entry.id, "mutated", language, draw.choice([*ways, text[:place] + sign + text[place + 1 :]])


def called(call: Any, entry: Any, language: str) -> str:
    """A call as a model writes it: texts in quotes, everything else as its source."""
    ((name, arguments),) = call.items()
    alone = [one["name"] for one in entry.functions] if len(entry.functions) == 1 else []  # gold may name another
    kinds = next(one["parameters"]["properties"] for one in entry.functions if one["name"] in (name, *alone))
    parts = []
    for key, value in arguments.items():
        kind = kinds.get(key, {}).get("type")
        text = kind in ("String", "char") or (kind == "any" and not SOURCE.fullmatch(str(value)))
        quoted = f'"{value}"' if text else str(value)
        parts.append(f"{key} = {quoted}" if language == "Java" else f"{key}={quoted}")
    return f"{name}({', '.join(parts)})"


if __name__ == "__main__":
    sys.exit(main())
