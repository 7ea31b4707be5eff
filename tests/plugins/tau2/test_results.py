"""Official result files: judged by the calls as they were recorded, whatever reward stands beside them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root as cli
from callwright.commands.app import App
from callwright.errors import DataError
from callwright_plugins.tau2.benchmark import Tau2Retail
from callwright_plugins.tau2.dialogue import recorded, same_task
from callwright_plugins.tau2.mock.benchmark import Tau2Mock

STATED = Tau2Mock().stated


def said(text: str, role: str = "assistant") -> dict[str, Any]:
    return {"role": role, "content": text, "tool_calls": None, "turn_idx": 3, "cost": 0.1}


def called(name: str, result: str, by: str = "assistant", **arguments: Any) -> list[dict[str, Any]]:
    call = {"id": "c", "name": name, "arguments": arguments, "requestor": by}
    answer = {"id": "c", "role": "tool", "content": result, "requestor": by, "error": False}
    return [{"role": by, "content": None, "tool_calls": [call]}, answer]


def simulation(task: str, *messages: Any, ended: str = "user_stop", **more: Any) -> dict[str, Any]:
    flat = [one for some in messages for one in (some if isinstance(some, list) else [some])]
    lie = {"reward": 0.5}
    return {
        "id": f"s-{task}",
        "task_id": task,
        "termination_reason": ended,
        "messages": flat,
        "reward_info": lie,
        **more,
    }


EXTENDED = called("extend_hire", "{}", hire="H1", hours=2)
LOCKED, ENDED = called("close_lock", "{}", "user", bicycle="B2"), called("end_hire", "{}", hire="H2")
#: Simulations with what is to be said of them.
RUNS: list[tuple[dict[str, Any], bool | None, str | None]] = [
    (simulation("longer", said("Hi!"), EXTENDED, said("That is €20 now."), said("###STOP###", "user")), True, None),
    (simulation("longer", said("20"), said("###STOP###", "user")), False, "db"),
    (simulation("longer", EXTENDED, said("20", "user")), False, "communicate"),
    (simulation("longer", EXTENDED, said("20"), ended="max_steps"), False, "max_steps"),
    (simulation("longer", EXTENDED, said("20"), ended="agent_stop"), True, None),
    (simulation("longer", EXTENDED, said("20"), ended="infrastructure_error"), None, "masked"),
    (simulation("bring_back", LOCKED, ENDED), True, None),
    (simulation("bring_back", ENDED, LOCKED), False, "db"),
    (simulation("opening_hours"), True, None),
]


@pytest.fixture
def judge(tmp_path: Path) -> Callable[..., Result]:
    app = App(registry=cw.default_registry())

    def judged(answers: Path, *words: str) -> Result:
        given = ["benchmark", "judge", "tau2-mock", str(answers), "--overwrite"]
        given += ["-o", str(tmp_path / "out.jsonl"), *words]
        return CliRunner().invoke(cli, given, obj=app, catch_exceptions=False)

    return judged


def results(runs: Sequence[Any], tasks: Any = None) -> dict[str, Any]:
    return {
        "timestamp": "now",
        "info": {},
        "tasks": list(STATED.values()) if tasks is None else tasks,
        "simulations": runs,
    }


def refused(result: Result) -> str:
    assert result.exit_code != 0
    return " ".join(result.output.split())


def read(path: Path) -> list[tuple[Any, Any]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert {row["kind"] for row in rows} == {"official"}
    return [(row["valid"], row["error_type"]) for row in rows]


@pytest.mark.parametrize("form", ["file", "packed", "folder"])
def test_simulations_are_judged_by_their_calls(form: str, judge: Callable[..., Result], tmp_path: Path) -> None:
    runs = [one for one, *_ in RUNS]
    path = tmp_path / "results.json"
    if form == "folder":
        (tmp_path / "simulations").mkdir()
        for number, one in enumerate(runs):
            (tmp_path / "simulations" / f"{number}.json").write_text(json.dumps(one))
        path.write_text(json.dumps({**results([]), "simulation_index": []}))
        path = tmp_path
    elif form == "packed":
        path = tmp_path / "results.json.gz"
        path.write_bytes(gzip.compress(json.dumps(results(runs)).encode()))
    else:
        path.write_text(json.dumps(results(runs), indent=2))
    told = json.loads(judge(path, "--json").stdout)
    assert read(tmp_path / "out.jsonl") == [(valid, error) for _, valid, error in RUNS]
    assert told["values"]["overall"] == pytest.approx((2 / 5 + 1 / 2 + 1) / 3)
    assert told["masked"] == 1


def test_another_version_of_a_task_is_refused(judge: Callable[..., Result], tmp_path: Path) -> None:
    other = json.loads(json.dumps(STATED["longer"]))
    other["evaluation_criteria"]["communicate_info"] = ["24"]
    (tmp_path / "a.json").write_text(json.dumps(results([RUNS[0][0]], [other])))
    assert "another version of tau2-bench" in refused(judge(tmp_path / "a.json"))


def test_defaults_that_are_written_out_are_the_same_task() -> None:
    task = STATED["bring_back"]
    written = json.loads(json.dumps(task))
    criteria = written["evaluation_criteria"]
    criteria |= {"communicate_info": None, "nl_assertions": None}
    for action in criteria["actions"]:
        action |= {"info": None, "compare_args": None}
    assert same_task(task, written)
    criteria["actions"][0]["arguments"]["bicycle"] = "B1"
    assert not same_task(task, written)
    assert same_task(STATED["opening_hours"], {"id": "x"})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"messages": None, "ticks": [{}]}, "one of voices"),
        ({"messages": None}, "has no messages"),
        ({"messages": EXTENDED[:1]}, "a call without a result"),
        ({"messages": EXTENDED[1:]}, "a result without a call"),
        ({"messages": ["hello"]}, "cannot be read"),
        ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "cannot be read"),
    ],
)
def test_what_is_no_dialogue_is_said(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        recorded({**RUNS[0][0], **changed})


def test_files_of_rows_are_read_as_such_and_folders_without_results_refused(
    judge: Callable[..., Result], tmp_path: Path
) -> None:
    text = cw.parser("json").render(cw.Program(text="Goodbye."))
    rows = [{"id": "opening_hours", "completion": text}, {"id": "longer", "completion": [text]}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judge(tmp_path / "rows.jsonl")
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [(one["valid"], one["error_type"]) for one in found] == [(True, None), (False, "db")]
    (tmp_path / "empty").mkdir()
    assert "has no results.json" in refused(judge(tmp_path / "empty"))
    (tmp_path / "bad.json").write_text(json.dumps(results([{"id": "x"}])))
    assert "simulations[0]: a simulation is an object" in refused(judge(tmp_path / "bad.json"))


def test_results_that_calls_do_not_give_any_more_are_masked(shop: tuple[Any, Path]) -> None:
    source = shop[1].parents[3]
    domain = source / "data/tau2/domains/retail"
    domain.mkdir(exist_ok=True)
    criteria = {"actions": [{"name": "buy", "arguments": {"item": "i1"}}], "reward_basis": ["DB"]}
    (domain / "tasks.json").write_text(json.dumps([{"id": "0", "evaluation_criteria": criteria}]))
    benchmark = Tau2Retail(data=source / "data", package=source)
    (task,) = benchmark.tasks()
    runs = [called("buy", result, item="i1") for result in ("1.0", "1", "2.0", "sold")]
    attempts = []
    for run in runs:
        answer = benchmark.answer({"id": "0", "simulation": simulation("0", run)}, cw.parser("json"))
        assert answer is not None
        attempts.append((task, answer))
    found = benchmark.judge_together(attempts)
    assert [one.correct for one in found] == [True, True, False, False]
    assert [one.masked is not None for one in found] == [False, False, True, True]
    assert "buy gave 1.0 in place of 2.0" in str(found[2].masked)
