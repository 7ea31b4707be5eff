"""T-Eval's figures beside those of the official evaluators, on the same answers and with the same embedder.

    python benchmarks/teval_agreement.py --package DIR --data DIR --scratch DIR [--mutations 40] [--write]

``DIR`` of ``--package`` holds the official package ``teval``. Its evaluators are run as they are; what they import and
do not need here (mmengine's reader, the metric library, sentence-transformers) is put in by this program, so that
both sides ask the same embedder. ``--write`` writes the official figures of the hand-made cases into the tests.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import random
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import callwright as cw
from callwright.measuring.benchmark import Judged
from callwright_plugins.teval.benchmark import TEval
from callwright_plugins.teval.embedders import Trigrams
from callwright_plugins.teval.files import FILES

CASES = Path(__file__).parent.parent / "tests/plugins/teval/cases.json"
#: How the official program is called for a file (its test_all_en.sh).
CALLED = {
    "instruct": ("InstructEvaluator", "instruct", "json"),
    "plan_json": ("PlanningEvaluator", "plan", "json"),
    "plan_str": ("PlanningEvaluator", "plan", "str"),
    "reason_str": ("ReasonRetrieveUnderstandEvaluator", "reason", "str"),
    "retrieve_str": ("ReasonRetrieveUnderstandEvaluator", "retrieve", "str"),
    "understand_str": ("ReasonRetrieveUnderstandEvaluator", "understand", "str"),
    "reason_retrieve_understand_json": ("ReasonRetrieveUnderstandEvaluator", "rru", "json"),
    "review_str": ("ReviewEvaluator", "review", "str"),
}
NAMES = {"f1_score": "f1"}


class Texts(list):
    """Texts in the place of their embeddings."""

    def __getitem__(self, at: Any) -> Any:
        return Texts([super().__getitem__(at)])


class Cosines:
    def __init__(self, values: Any) -> None:
        self.values = np.array(values)

    def cpu(self) -> Cosines:
        return self

    def numpy(self) -> Any:
        return self.values


class Sentences:
    def __init__(self, model: str) -> None:
        pass

    def encode(self, texts: Any, convert_to_tensor: bool = True) -> Texts:
        return Texts(texts)


def official(package: Path) -> Any:
    """The official evaluators, over an embedder of ours and without a file."""
    memory: dict[str, Any] = {}
    stand_ins = {
        "mmengine": {"load": lambda path: json.loads(memory[path])},
        "evaluate": {},
        "termcolor": {"colored": str},
        "tqdm": {"tqdm": lambda some: some},
        "sentence_transformers": {
            "SentenceTransformer": Sentences,
            "util": types.SimpleNamespace(cos_sim=lambda one, other: Cosines(Trigrams().similarity(one, other))),
        },
    }
    for name, members in stand_ins.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        sys.modules[name] = module
    sys.path.insert(0, str(package))
    return importlib.import_module("teval.evaluators"), memory


def verdict(evaluators: Any, stem: str, entries: dict[str, Any]) -> dict[str, float]:
    """What the official program makes of answers, by our names. Raises whatever it raises."""
    module, memory = evaluators
    name, kind, form = CALLED[stem]
    memory["answers"] = json.dumps(entries)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(module, name)("answers", default_prompt_type=form, eval_type=kind).evaluate()
    found = {}
    for key, value in made.items():
        if isinstance(value, list) or np.isnan(value):
            continue
        for prefix, category in (("json_", "instruct_json "), ("string_", "instruct_str ")):
            if stem == "instruct" and key.startswith(prefix):
                key = category + key.removeprefix(prefix).removesuffix("_metric")
        found[key if " " in key else f"{stem} {NAMES.get(key, key)}"] = float(value)
    return found


def ours(benchmark: TEval, stem: str, entries: dict[str, Any]) -> dict[str, float]:
    judged = []
    for key, entry in entries.items():
        attempt = benchmark.answer({"id": f"{stem}/{key}", "prediction": entry["prediction"]}, cw.parser("json"))
        assert attempt is not None
        judged.append(
            Judged(attempt.task.id, benchmark.category_of(attempt.task), benchmark.judge(attempt.task, attempt))
        )
    return {key: value for key, value in benchmark.aggregate(judged).items() if " " in key and value is not None}


def compare(evaluators: Any, benchmark: TEval, stem: str, entries: dict[str, Any]) -> tuple[str, Any, Any]:
    """``same``, ``other`` or ``stops`` (where the official program raises), and both figures."""
    mine = ours(benchmark, stem, entries)
    try:
        theirs = verdict(evaluators, stem, entries)
    except Exception as error:
        return "stops", type(error).__name__, mine
    same = mine.keys() == theirs.keys() and all(abs(mine[key] - theirs[key]) < 1e-12 for key in mine)
    return ("same" if same else "other"), theirs, mine


# Answers --------------------------------------------------------------------------------------------------------------


def gold_of(stem: str, entry: dict[str, Any], draw: random.Random) -> str:
    gold = entry["ground_truth"]
    if stem == "plan_json":
        return json.dumps([{**one, "args": str(one["args"])} for one in gold])
    if stem == "plan_str":
        return "\n".join(f"{at}. Use {one['name']} to {one['args']}" for at, one in enumerate(gold, 1))
    if stem == "review_str":
        return f"Answer: {gold['answer']}"
    if stem == "instruct":
        made = entry["template"]
        if entry["meta_data"]["response_format"] == "json":
            return json.dumps({made["thought"]: "so", made["action"]: gold["action"], made["args"]: gold["args"]})
        return (
            f"{made['thought_start']}so{made['thought_end']}{made['action_start']}{gold['action']}{made['action_end']}"
            f"{made['args_start']}{gold['args']}{made['args_end']}"
        )
    if stem.endswith("_str"):
        return str(gold[{"reason": "thought", "retrieve": "name", "understand": "args"}[stem.removesuffix("_str")]])
    return json.dumps(gold)


NOISE = [
    "",
    " ",
    "\n",
    ". ",
    "'",
    '"',
    "`",
    "```json\n",
    "\\d",
    ":",
    "[",
    "]",
    "{",
    "}",
    "null",
    "None",
    "NaN",
    "1e999",
]
NOISE += ["FinishAction", "x.y", "a", "E", "\x00", "é", "true", "A: ", "0", "-1", "Answer: ", "id", "(", "1_0", "b''"]


def mutated(text: str, other: str, draw: random.Random) -> str:
    """A text that a model may have written instead."""
    for _ in range(draw.randint(1, 3)):
        kind = draw.randrange(11)
        at, to = sorted(draw.randrange(len(text) + 1) for _ in range(2))
        if kind == 0:
            text = text[:at] + text[to:]
        elif kind == 1:
            text = text[:at] + draw.choice(NOISE) + text[at:]
        elif kind == 2:
            text = text[:at]
        elif kind == 3:
            text = draw.choice(NOISE) + text + draw.choice(NOISE)
        elif kind == 4:
            text = f"Sure!\n```json\n{text}\n```\nThat is it."
        elif kind == 5:
            text = text.replace('"', "'")
        elif kind == 6:
            text = text.replace("'", '"')
        elif kind == 7:
            text = text[:at] + other[: draw.randrange(len(other) + 1)]
        elif kind == 8:
            pieces = text.split(draw.choice(["}, {", "\n", ", ", "."]))
            draw.shuffle(pieces)
            text = draw.choice(["}, {", "\n", ", ", "."]).join(pieces)
        elif kind == 9:
            text = text[:to] + text[at:to] + text[to:]
        else:
            text = other
    return text


def made_plans(entry: dict[str, Any], draw: random.Random) -> Iterator[str]:
    """Plans that can be read, and are not the reference."""
    gold = entry["ground_truth"]
    for _ in range(4):
        plan = [dict(one) for one in gold]
        kind = draw.randrange(6)
        if kind == 0:
            draw.shuffle(plan)
            plan = [{**one, "id": at} for at, one in enumerate(plan)]
        elif kind == 1:
            plan += [dict(draw.choice(plan)) for _ in range(draw.randint(1, 4))]
        elif kind == 2:
            plan = plan[: draw.randint(0, len(plan))]
        elif kind == 3:
            plan[draw.randrange(len(plan))]["name"] = draw.choice(["nothing.at_all", gold[0]["name"] + "s"])
        elif kind == 4:
            plan[draw.randrange(len(plan))]["args"] = draw.choice([{}, "so", None, 3, {"place": "Bergen"}])
        else:
            draw.shuffle(plan)
        yield json.dumps([{**one, "args": draw.choice([str, lambda args: args])(one["args"])} for one in plan])


def derived(entries: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries for the files that are not there, made of the references of plans: the layout is that of the release."""
    files: dict[str, dict[str, Any]] = {stem: {} for stem in FILES}
    words = {
        "thought_start": ["Thought: ", "<t>", "[Thought] ", "T(1) ", ""],
        "thought_end": ["\n", "</t>", ""],
        "action_start": ["Action: ", "<a>", "name. "],
        "action_end": ["\n", "</a>", " "],
        "args_start": ["Args: ", "<x>", "Args? "],
        "args_end": ["\n", "</x>", ""],
    }
    draw = random.Random(1)
    for key, entry in entries["plan_json"].items():
        for at, one in enumerate(entry["ground_truth"][:3]):
            step = {"thought": f"I must use {one['name']} now", "name": one["name"], "args": one["args"]}
            prompt = entry["origin_prompt"]
            place = f"{key}_{at}"
            base = {"template": "", "origin_prompt": prompt}
            for stem in ("reason_str", "retrieve_str", "understand_str"):
                gold = {**step, "args": json.dumps(step["args"])} if at else step
                files[stem][place] = {**base, "meta_data": {"response_format": "str"}, "ground_truth": gold}
            rru = {**base, "meta_data": {"response_format": "json"}, "ground_truth": step}
            files["reason_retrieve_understand_json"][place] = rru
            form = draw.choice(["json", "string"])
            template: Any = {"thought": "goal", "action": "name", "args": "args"}
            if form == "string":
                template = {name: draw.choice(some) for name, some in words.items()}
            files["instruct"][place] = {
                "template": template,
                "meta_data": {"response_format": form},
                "ground_truth": {"action": step["name"], "args": step["args"]},
                "origin_prompt": prompt,
            }
    return {stem: {**files[stem], **entries.get(stem, {})} for stem in FILES}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--package", type=Path, required=True)
    asked.add_argument("--data", type=Path, required=True)
    asked.add_argument("--mutations", type=int, default=10, help="of each entry")
    asked.add_argument("--write", action="store_true")
    asked.add_argument("--scratch", type=Path, required=True, help="where files of derived entries are written")
    given = asked.parse_args()
    evaluators = official(given.package)

    cases = json.loads(CASES.read_text())
    given.scratch.mkdir(parents=True, exist_ok=True)
    for stem in FILES:
        known = {case["key"]: case["entry"] for case in cases if case["file"] == stem}
        (given.scratch / f"{stem}_v2.json").write_text(json.dumps(known))
    hand = TEval(given.scratch, "v2", "trigrams")
    counted: Counter[str] = Counter()
    for case in cases:
        answers = {case["key"]: {**case["entry"], "prediction": case["prediction"]}}
        outcome, theirs, mine = compare(evaluators, hand, case["file"], answers)
        counted[outcome] += 1
        case["official"] = theirs
        if outcome == "other":
            print("other:", case["about"], theirs, mine, sep="\n  ")
    print(f"hand-made cases: {dict(counted)}")
    if given.write:
        CASES.write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n")

    from callwright_plugins.teval.files import file_of, read_object

    there = {stem: read_object(path) for stem in FILES if (path := file_of(given.data, stem, "v1")) is not None}
    files = derived(there)
    for stem, entries in files.items():
        (given.scratch / f"{stem}_v1.json").write_text(json.dumps(entries))
    benchmark = TEval(given.scratch, "v1", "trigrams")
    draw = random.Random(20)
    for stem, entries in files.items():
        outcomes: Counter[str] = Counter()
        gold = {key: gold_of(stem, entry, draw) for key, entry in entries.items()}
        whole = {key: {**entry, "prediction": gold[key]} for key, entry in entries.items()}
        begun = time.perf_counter()
        mine = ours(benchmark, stem, whole)
        middle = time.perf_counter()
        theirs = verdict(evaluators, stem, whole)
        ended = time.perf_counter()
        far = max(abs(mine[key] - theirs[key]) for key in theirs)
        print(f"{stem}: gold of {len(whole)}: {theirs}; ours differ by {far:.1e}")
        print(f"  {len(whole) / (middle - begun):,.0f} answers/s, official {len(whole) / (ended - middle):,.0f}")
        texts = list(gold.values())
        for key, entry in entries.items():
            written = [mutated(gold[key], draw.choice(texts), draw) for _ in range(given.mutations)]
            if stem == "plan_json":
                written += made_plans(entry, draw)
            for text in written:
                answers = {key: {**entry, "prediction": text}}
                outcome, one, other = compare(evaluators, benchmark, stem, answers)
                outcomes[outcome if outcome != "stops" else f"stops: {one}"] += 1
                if outcome == "other" and outcomes["other"] < 4:
                    print("other:", key, repr(text)[:600], one, other, sep="\n  ")
        print(f"  answers: {dict(outcomes)}")


if __name__ == "__main__":
    main()
