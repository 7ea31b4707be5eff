"""tau2-bench here beside its own evaluators, on the same dialogues, in one run.

    python benchmarks/tau2_agreement.py --package DIR --data DIR --interpreter PYTHON [--domain retail] [--limit 10]

``--package`` is the repository of tau2-bench, ``--data`` its folder ``data``, ``--interpreter`` a Python of 3.12 with
its base dependencies and pandas. For each domain, three things are done:

1. The official evaluators judge two dialogues of each task: one holds the calls of its reference, the other leaves out
   the last call that changes something. They are written as an official result file, with the rewards.
2. ``callwright benchmark judge`` reads that file, and its verdicts are held against the recorded rewards; so are the
   factors and ``db_match``, and the speed of judging 64 at a time is measured, in processor time on both sides.
3. ``callwright evaluate --sampler gold`` leads the reference of each task as a dialogue; and the same without the last
   turn that changes something is led and held against the official reward.

NL_ASSERTION is left out on both sides where it has sentences.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

import callwright as cw
from callwright.episodes import Conversation
from callwright.machines.foreign_code.code import ForeignCode, ForeignLimits
from callwright.measuring.benchmark import users_of
from callwright.walk.attempt import Attempt
from callwright.walk.prompt import build_messages
from callwright_plugins.tau2.benchmark import Tau2
from callwright_plugins.tau2.domain import SourceDomain
from callwright_plugins.tau2.scoring import Criteria
from callwright_plugins.tau2.tasks import reference, wants

SIDE = "tau2_official_side"
AT_ONCE = 64


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--package", type=Path, required=True)
    asked.add_argument("--data", type=Path, required=True)
    asked.add_argument("--interpreter", required=True)
    asked.add_argument("--domain", action="append", default=[])
    asked.add_argument("--version", help="of the tasks; without it the usual one of the domain")
    asked.add_argument("--limit", type=int, default=None)
    asked.add_argument("--rounds", type=int, default=5, help="how often everything is judged, for the speed")
    given = asked.parse_args()
    official = ForeignCode(
        Path(__file__).parent,
        interpreter=given.interpreter,
        paths=[given.package / "src"],
        variables={"TAU2_DATA_DIR": str(given.data.absolute())},
        limits=ForeignLimits(time=600),
    )
    with official:
        for domain in given.domain or ["retail", "airline", "telecom"]:
            run(domain, given, official)


def run(domain: str, given: argparse.Namespace, official: ForeignCode) -> None:
    name = f"tau2-{domain}" + (f":{given.version}" if given.version else "")
    options = {"data": str(given.data), "package": str(given.package), "python": given.interpreter}
    version = {"version": given.version} if given.version else {}
    benchmark: Tau2 = cw.default_registry().create("benchmark", f"tau2-{domain}", **version, **options)
    tasks = list(benchmark.stated.values())[: given.limit]
    runs: list[dict[str, Any]] = []
    places: dict[str, int] = {}
    theirs = 0.0
    for task in tasks:
        for dropped in (0, 1):
            found = official.call(f"{SIDE}:dialogue", domain, task, dropped)
            if not found:
                continue
            said = [] if dropped else list((task["evaluation_criteria"].get("communicate_info")) or ())
            made = official.call(
                f"{SIDE}:simulation",
                domain,
                task,
                found["calls"],
                said,
                f"{'short' if dropped else 'gold'}-{len(runs)}",
            )
            runs.append(made["run"])
            if dropped:
                places[task["id"]] = found["left_out"][0]
            theirs += made["seconds"]
    stated = [official.call(f"{SIDE}:stated", task) for task in tasks]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        file.write_text(json.dumps({"timestamp": None, "info": {}, "tasks": stated, "simulations": runs}))
        judged = judged_by_command(name, options, file)
        same = sum(
            one["valid"] == (made["reward_info"]["reward"] == 1.0) for one, made in zip(judged, runs, strict=True)
        )
        parts, first, later = judged_here(benchmark, file, runs, given.rounds)
    short = {run["task_id"]: run["reward_info"]["reward"] for run in runs if run["id"].startswith("short")}
    led = {
        task: benchmark.judge(benchmark.corpus.task(task), led_without(benchmark, task, place)).score
        for task, place in places.items()
    }
    overall = evaluated_by_command(name, options, None if given.limit is None else given.limit)
    pace = len(runs) / theirs
    print(f"{name}: {len(runs)} dialogues of {len(tasks)} tasks")
    print(f"  verdicts of a result file equal to those recorded: {same}; factors and db_match: {parts}")
    print(f"  led by the sampler gold: overall {overall}")
    alike, zero = sum(led[task] == reward for task, reward in short.items()), list(short.values()).count(0.0)
    print(f"  led without the last call that changes something: {alike} of {len(short)} as officially ({zero} are 0)")
    for what, speed in (("each reference new", first), ("references kept", later)):
        paces = f"{speed:,.1f} evaluations in a second of processor time, official {pace:,.2f}"
        print(f"  {what}: {paces}: {speed / pace:,.1f} times", flush=True)


def judged_by_command(name: str, options: Mapping[str, str], file: Path) -> list[dict[str, Any]]:
    output = file.with_name("judged.jsonl")
    command("benchmark", "judge", name, str(file), *given_to(options), "-o", str(output))
    return [json.loads(line) for line in output.read_text().splitlines()]


def evaluated_by_command(name: str, options: Mapping[str, str], limit: int | None) -> float:
    words = [] if limit is None else ["--limit", str(limit)]
    told = command("evaluate", "--benchmark", name, "--sampler", "gold", *given_to(options), *words, "--json")
    return float(json.loads(told)["values"]["overall"])


def given_to(options: Mapping[str, str]) -> list[str]:
    return [
        *("--data", options["data"], "--package", options["package"]),
        *("--benchmark-option", f"python={options['python']}"),
    ]


def command(*words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "callwright", *words], check=True, capture_output=True, text=True
    ).stdout


def judged_here(benchmark: Tau2, file: Path, runs: Sequence[dict[str, Any]], rounds: int) -> tuple[int, float, float]:
    """How many agree in all factors and in ``db_match``; evaluations in a second of processor time, of the first round
    and of others.

    The databases are parsed before; what references leave is found out in the first round.
    """
    parser = cw.parser("json")
    rows = benchmark.answer_rows(file)
    assert rows is not None
    answers = []
    for _, row in rows:
        attempt = benchmark.answer(row, parser)
        assert attempt is not None
        answers.append((attempt.task, attempt))
    batches = [answers[at : at + AT_ONCE] for at in range(0, len(answers), AT_ONCE)]
    begun = processor_time(benchmark)
    found = [one for batch in batches for one in benchmark.judge_together(batch)]
    first = len(answers) / (processor_time(benchmark) - begun)
    alike = 0
    for one, made in zip(found, runs, strict=True):
        info = made["reward_info"]
        wanted = {**info["reward_breakdown"], "db_match": float(info["db_check"]["db_match"])}
        alike += dict(one.parts) == wanted
        if dict(one.parts) != wanted:
            print("other:", made["task_id"], made["id"], one, wanted, sep="\n  ")
    begun = processor_time(benchmark)
    for _ in range(rounds):
        for batch in batches:
            benchmark.judge_together(batch)
    return alike, first, rounds * len(answers) / (processor_time(benchmark) - begun)


def processor_time(benchmark: Tau2) -> float:
    """Of this process and of that of tau2's code, in seconds."""
    assert isinstance(benchmark.domain, SourceDomain)
    there: float = benchmark.domain.source._code.call("time:process_time")
    return time.process_time() + there


def led_without(benchmark: Tau2, task_id: str, place: int) -> Attempt:
    """A dialogue that holds the reference without one action, whose agent says none of the texts."""
    task, stated = benchmark.corpus.task(task_id), benchmark.stated[task_id]
    criteria = Criteria.of(stated)
    assert criteria is not None
    assert task.user is not None
    actions = [one for at, one in enumerate(criteria.actions) if at != place]
    gold, lines = reference(evolve(criteria, actions=actions, communicate=()), wants(stated))
    task = evolve(task, user=cw.UserSpec("replayed", {"says": lines, "stop": task.user.options["stop"]}))
    conditions = cw.Conditions(limits=benchmark.corpus.limits, users=users_of(benchmark, cw.default_registry()))
    parser = cw.parser("json")
    talk = Conversation(task, parser, build_messages(task, parser), conditions)
    for turn in gold:
        calls = tuple(cw.Call(at, one["tool"], one["arguments"]) for at, one in enumerate(turn.get("calls", ())))
        talk.accept(cw.Completion(parser.render(cw.Program(calls, text=turn.get("say")))))
    assert talk.stop == "answered"
    return talk.attempt


if __name__ == "__main__":
    main()
