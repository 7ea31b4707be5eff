"""The corpus of the released benchmark: layouts, splits, and what a folder without recordings is good for."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.errors import DataError, UnknownName
from callwright.training.evaluation import judge
from callwright.walk.prompt import build_messages
from callwright_plugins.recorded.depthbench_official import TRAINING_TOOLS, DepthBenchOfficial

ROOT = Path(__file__).resolve().parents[3]
DATA = Path(os.environ.get("CALLWRIGHT_DATA", ROOT.parent / "shared" / "data")) / "depthbench_official"

DEFINITIONS = {
    "GetLocation": {
        "parameters": {"type": "dict", "properties": {}, "required": []},
        "returns": {"index": "Location", "type": "dict", "properties": {"Location": {"type": "string"}}},
    },
    "FindDealershipsByLocation": {
        "parameters": {"type": "dict", "properties": {"location": {"type": "string"}}, "required": ["location"]},
        "returns": {"type": "dict", "properties": {"Dealerships": {"type": "array"}}},
    },
    "GetTime": {"parameters": {"type": "dict", "properties": {}, "required": []}},
}
CHAIN = {"0": {"GetLocation": {}}, "1": {"FindDealershipsByLocation": {"location": "API_RESPONSE_0"}}}
LOCATION = {"status_code": 200, "Location": "San Diego"}
FOUND = {"status_code": 200, "Dealerships": ["Coastal Auto"]}


def query(calls: dict[str, Any], response: dict[str, Any], apis: list[str], **more: Any) -> dict[str, Any]:
    return {
        "prompt": "dealers near me",
        "num_calls": len(calls),
        "follow_up": False,
        "return_all": False,
        "tag": "D",
        "apis": apis,
        "api_calls": json.dumps(calls),
        "response": json.dumps(response) if response else "",
        **more,
    }


QUERIES = {
    "3": query(CHAIN, {"1": FOUND}, ["GetLocation", "FindDealershipsByLocation"]),
    "12": query({"0": {"GetTime": {}}}, {"0": {"Time": "8:00"}}, ["GetTime"]),
    "660": query({}, {}, []),
    "711": query({}, {}, []),
}


def completion(calls: dict[str, Any]) -> str:
    return f'<think>\n\n</think>\n<tool_call return="one">\n{json.dumps(calls)}\n</tool_call>'


def clone(root: Path) -> Path:
    """The layout of the released repository, which records no results."""
    (root / "data" / "depthbench").mkdir(parents=True)
    (root / "data" / "depthbench" / "full_dataset.json").write_text(json.dumps(QUERIES))
    (root / "src" / "tier" / "prompts").mkdir(parents=True)
    (root / "src" / "tier" / "prompts" / "function_definitions.json").write_text(json.dumps(DEFINITIONS))
    return root


def test_a_folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "queries.json.gz").write_bytes(gzip.compress(json.dumps(QUERIES).encode()))
    (tmp_path / "function_definitions.json").write_text(json.dumps(DEFINITIONS))
    rows = [
        {"scenario": "D", "tool": "GetLocation", "arguments": {}, "status": "ok", "value": LOCATION},
        {
            "scenario": "",
            "tool": "FindDealershipsByLocation",
            "arguments": {"location": "San Diego"},
            "status": "ok",
            "value": FOUND,
        },
    ]
    (tmp_path / "cassette.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    corpus = DepthBenchOfficial(tmp_path)
    assert corpus.splits == {"train": 2, "validation": 2}
    assert [task.id for task in corpus["train"]] == ["3", "660"]
    task = corpus.task("3")
    assert (task.depth, task.chain, task.structure, task.scenario) == (2, 2, "linear", "D")
    assert set(task.tools) == set(DEFINITIONS)
    tier = cw.reward("tier")
    assert tier.score(task, completion(CHAIN)).total == pytest.approx(1.0)
    assert tier.score(corpus.task("660"), completion({})).total == pytest.approx(1.0)
    assert tier.score(task, completion({"0": {"GetTime": {}}})).total is None


def many(root: Path) -> DepthBenchOfficial:
    """Twenty tools more, none of which was recorded but those of the chain."""
    string = {"type": "string"}
    others = {
        f"Other{n}": {"parameters": {"type": "dict", "properties": {"x": string}, "required": ["x"]}} for n in range(20)
    }
    (root / "queries.json").write_text(json.dumps(QUERIES))
    (root / "function_definitions.json").write_text(json.dumps({**DEFINITIONS, **others}))
    rows = [{"scenario": "D", "tool": "GetLocation", "arguments": {}, "status": "ok", "value": LOCATION}]
    (root / "cassette.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return DepthBenchOfficial(root)


def test_prompts_list_the_tools_of_the_query_and_three_others(tmp_path: Path) -> None:
    corpus = many(tmp_path)
    for task_id, own in (("3", {"GetLocation", "FindDealershipsByLocation"}), ("660", set()), ("12", {"GetTime"})):
        task = corpus.task(task_id)
        assert len(task.tools) == 23
        assert set(task.offered) >= own
        assert len(task.offered) == len(own) + 3
        listed = build_messages(task, cw.parser("json"))[0].text.partition("# Tools\n")[2]
        assert [json.loads(line)["name"] for line in listed.splitlines()] == list(task.offered)
        assert DepthBenchOfficial(tmp_path).task(task_id).shown == task.shown
    assert len({tuple(sorted(set(corpus.task(one).offered) - {"GetTime"})) for one in QUERIES}) > 1
    everything = DepthBenchOfficial(tmp_path, shown="all")
    assert list(everything.task("3").offered) == list(everything.environment.tools)
    assert pickle.loads(pickle.dumps(everything)).task("3").shown is None
    with pytest.raises(cw.UsageError, match="'query' or 'all', not 'some'"):
        DepthBenchOfficial(tmp_path, shown="some")  # type: ignore[arg-type]


WRONG_IN_ANY_CASE = [
    ({"0": {"Nonsense": {}}}, "one", "schema:unknown_tool"),
    ({"0": {"GetLocation": {}}, "1": {"Other1": {}}}, "one", "schema:missing_parameter"),
    ({"0": {"Other1": {"x": 3}}}, "one", "schema:wrong_type"),
    ({"0": {"Other1": {"x": "API_RESPONSE_4"}}}, "one", "execution:unresolved_reference"),
    ({"0": {"Other1": {"x": "a"}}, "1": {"Other2": {"x": "API_RESPONSE_4"}}}, "one", "execution:unresolved_reference"),
    ({"0": {"Other1": {"x": "a"}}, "1": {"Other2": {"x": "b"}}}, "all", "answer:wrong"),
]


@pytest.mark.parametrize(("calls", "returns", "failure"), WRONG_IN_ANY_CASE)
def test_what_is_wrong_whatever_the_recording_lacks_is_wrong(
    tmp_path: Path, calls: dict[str, Any], returns: str, failure: str
) -> None:
    task = many(tmp_path).task("3")
    text = completion(calls).replace('"one"', f'"{returns}"', 1)
    verdict = judge(cw.Attempt(task, text, cw.parser("json")))
    assert (verdict.failure, verdict.masked, verdict.answer) == (failure, False, False)


def test_what_hangs_on_a_call_that_was_not_recorded_is_masked(tmp_path: Path) -> None:
    corpus = many(tmp_path)
    for calls in ({"0": {"Other1": {"x": "a"}}}, CHAIN, {"0": {"Other1": {"x": "a"}}, "1": {"Other2": {"x": "b"}}}):
        assert judge(cw.Attempt(corpus.task("3"), completion(calls), cw.parser("json"))).masked
    verdict = judge(cw.Attempt(corpus.task("660"), completion({"0": {"Other1": {"x": "a"}}}), cw.parser("json")))
    assert (verdict.failure, verdict.masked) == ("answer:should_abstain", False)
    several = cw.Attempt(
        corpus.task("3"), [completion({"0": {"Other1": {"x": 3}}}), completion(CHAIN)], cw.parser("json")
    )
    assert judge(several).masked  # a later turn may put an earlier one right


@pytest.mark.parametrize("named", [".", "data/depthbench"])
def test_a_clone_parses_and_validates(tmp_path: Path, named: str) -> None:
    corpus = DepthBenchOfficial(clone(tmp_path) / named)
    task = corpus.task("3")
    attempt = cw.Attempt(task, completion(CHAIN), cw.parser("json"))
    assert attempt.validation is not None
    assert attempt.validation.valid
    reward = cw.reward("tier").score_attempt(attempt)
    assert reward.total is None
    assert reward.masked is not None
    assert "not_recorded" in reward.masked
    missing = cw.Attempt(task, completion({"0": {"FindDealershipsByLocation": {}}}), cw.parser("json"))
    assert missing.validation is not None
    assert [mismatch.kind for mismatch in missing.validation.parameters] == ["missing"]


def test_what_is_no_copy_of_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"neither queries\.json nor full_dataset\.json"):
        DepthBenchOfficial(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        DepthBenchOfficial(tmp_path / "absent")
    (tmp_path / "queries.json").write_text(json.dumps(QUERIES))
    with pytest.raises(DataError, match=r"has no function_definitions\.json"):
        DepthBenchOfficial(tmp_path)
    (tmp_path / "function_definitions.json").write_text(json.dumps(DEFINITIONS))
    (tmp_path / "queries.json").write_text(json.dumps({"1": {"prompt": "?"}}))
    with pytest.raises(DataError, match="query '1' cannot be read"):
        DepthBenchOfficial(tmp_path).task("1")
    with pytest.raises(UnknownName):
        DepthBenchOfficial(tmp_path).task("2")


@pytest.mark.skipif(not (DATA / "queries.json").exists(), reason="the official DepthBench files are not here")
def test_official_splits_are_the_released_ones() -> None:
    corpus = DepthBenchOfficial(DATA)
    with gzip.open(DATA / "reference_scores.jsonl.gz", "rt", encoding="utf-8") as file:
        released = {row["qid"]: row["split"] for row in map(json.loads, file)}
    ours = {task.id: task.split for split in corpus.splits for task in corpus[split]}
    assert ours == {task: {"val": "validation"}.get(split, split) for task, split in released.items()}
    assert set(corpus.environment.tools) >= TRAINING_TOOLS
    assert len(corpus.environment.tools) == 163
