"""One test per decision of docs/divergences.md, on a world of four tools."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.environments.protocol import Outcome
from callwright.tools.spec import ToolSpec

TABLE = {"type": "array", "items": {"type": "object"}}
SPECS = {
    "Locate": ToolSpec.from_tier(
        {
            "name": "Locate",
            "parameters": {"type": "dict", "properties": {}},
            "returns": {"type": "dict", "index": "place", "properties": {"place": {"type": "string"}}},
        }
    ),
    "Find": ToolSpec.from_tier(
        {
            "name": "Find",
            "parameters": {
                "type": "dict",
                "properties": {
                    "place": {"type": "string"},
                    "limit": {"type": "integer"},
                    "radius": {"type": "float"},
                    "mode": {"type": "string", "enum": ["near", "far"]},
                },
                "required": ["place"],
            },
            "returns": {"type": "dict", "index": "rows", "properties": {"rows": {"type": "pandas.DataFrame"}}},
        }
    ),
    "Filter": ToolSpec.from_tier(
        {
            "name": "Filter",
            "parameters": {
                "type": "dict",
                "properties": {"rows": {"type": "pandas.DataFrame"}, "least": {"type": "float"}},
                "required": ["rows", "least"],
            },
            "returns": {"type": "dict", "index": "rows", "properties": {"rows": {"type": "pandas.DataFrame"}}},
        }
    ),
    "Order": ToolSpec.from_tier(
        {
            "name": "Order",
            "parameters": {
                "type": "dict",
                "properties": {
                    "buyer": {
                        "type": "dict",
                        "properties": {"name": {"type": "string"}, "city": {"type": "string"}},
                        "required": ["name", "city"],
                    },
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "dict",
                            "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}},
                            "required": ["sku", "qty"],
                        },
                    },
                },
                "required": ["buyer"],
            },
        }
    ),
}
ROWS = {"Rome": [{"n": "a", "stars": 3}, {"n": "b", "stars": 5}], "Oslo": [{"n": "c", "stars": 4}]}


class World:
    """Deterministic functions over two cities; an unknown city is a documented error inside a result."""

    name = "world"
    tools = SPECS
    pure = True

    def open(self, scenario: str = "", seed: int = 0) -> World:
        return self

    def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
        if tool == "Locate":
            return Outcome("ok", {"place": "Rome"})
        if tool == "Find":
            rows = ROWS.get(arguments["place"])
            return Outcome("ok", {"rows": rows} if rows is not None else {"status_code": 404, "error": "no such place"})
        if tool == "Filter":
            return Outcome("ok", {"rows": [row for row in arguments["rows"] if row["stars"] >= arguments["least"]]})
        return Outcome("ok", {"order": arguments})

    def digest(self) -> str:
        return ""

    def close(self) -> None:
        pass


def task(values: list[Any], returns: str = "one", offered: tuple[str, ...] = tuple(SPECS)) -> cw.Task:
    return cw.Task(
        id="t",
        query="?",
        tools={name: SPECS[name] for name in offered},
        answer=cw.Answer(tuple(values)),
        environment=World(),
        returns=returns,  # type: ignore[arg-type]
    )


def text(calls: Any, returns: str = "one") -> str:
    body = calls if isinstance(calls, str) else json.dumps(calls)
    return f'<think>\nso\n</think>\n<tool_call return="{returns}">\n{body}\n</tool_call>'


def score(of: cw.Task, calls: Any, returns: str = "one", recipe: str = "tier", ir: str = "json") -> cw.Reward:
    return cw.reward(recipe).score(of, text(calls, returns), ir=ir)


def value(reward: cw.Reward, name: str) -> float:
    return reward.scores[name].score.value


BEST = [{"rows": [{"n": "b", "stars": 5}]}]
GOOD = {
    "0": {"Locate": {}},
    "1": {"Find": {"place": "API_RESPONSE_0"}},
    "2": {"Filter": {"rows": "API_RESPONSE_1", "least": 4.5}},
}


def test_bare_and_dotted_references_agree() -> None:
    dotted = {
        "0": {"Locate": {}},
        "1": {"Find": {"place": "API_RESPONSE_0.place"}},
        "2": {"Filter": {"rows": "API_RESPONSE_1.rows", "least": 4.5}},
    }
    assert score(task(BEST), GOOD).total == score(task(BEST), dotted).total == 1.0
    lost = {"0": {"Find": {"place": "Atlantis"}}, "1": {"Order": {"buyer": "API_RESPONSE_0"}}}
    spelled = {"0": {"Find": {"place": "Atlantis"}}, "1": {"Order": {"buyer": "API_RESPONSE_0.rows"}}}
    assert value(score(task(BEST), lost), "execution") == value(score(task(BEST), spelled), "execution") == 1


def test_wrong_field_does_not_execute() -> None:
    calls = {"0": {"Locate": {}}, "1": {"Find": {"place": "API_RESPONSE_0.nowhere"}}}
    reward = score(task(BEST), calls)
    assert value(reward, "execution") == 0
    assert reward.scores["execution"].score.evidence[0].code == "unresolved_reference"
    nested = {"0": {"Find": {"place": "Rome"}}, "1": {"Find": {"place": "API_RESPONSE_0.rows[1].n"}}}
    assert value(score(task(BEST), nested), "execution") == 1


@pytest.mark.parametrize(
    "reference",
    ["API_RESPONSE_1", "API_RESPONSE_2", "API_RESPONSE_42", "API_RESPONSE_42.a", "API_RESPONSE_1000000000"],
)
@pytest.mark.parametrize("into", ["Find", "Filter"])  # a text, a table
def test_dangling_reference_does_not_execute(reference: str, into: str) -> None:
    arguments = {"place": reference} if into == "Find" else {"rows": reference, "least": 1}
    calls = {"0": {"Locate": {}}, "1": {into: arguments}}
    for of, returns in ((task(BEST), "one"), (task([*BEST, {"place": "Rome"}], "all"), "all")):
        reward = score(of, calls, returns)
        assert reward.total == pytest.approx(0.4)
        assert reward.stage == "execution"
        assert [value(reward, name) for name in ("format", "names", "parameters", "types")] == [1, 1, 1, 1]
        (evidence,) = reward.scores["execution"].score.evidence
        assert (evidence.code, evidence.call) == ("unresolved_reference", 1)
        assert reference in evidence.reason
        for recipe, total in (("tier-guarded", 0.4), ("tier-no-parse", 1 / 7), ("tier-no-execution", 4 / 9)):
            assert score(of, calls, returns, recipe).total == pytest.approx(total)
        strict = score(of, calls, returns, "tier-strict")
        assert (strict.total, strict.stage) == (0, "format")
        assert strict.scores["format"].score.evidence[0].code == "dangling_reference"
    assert score(task(BEST), calls, recipe="tier-released").scores["format"].score.full


@pytest.mark.parametrize("text", ["API_RESPONSE_", "API_RESPONSE_x", "API_RESPONSE_0 ", "API_RESPONSE_0..place"])
def test_misspelt_reference_does_not_execute(text: str) -> None:
    for arguments in ({"Find": {"place": text}}, {"Filter": {"rows": text, "least": 1}}):
        assert score(task(BEST), {"0": {"Locate": {}}, "1": arguments}).total == pytest.approx(0.4)
    said = {"0": {"Locate": {}}, "1": {"Find": {"place": "api_response_0"}}}
    assert score(task(BEST), said).total == pytest.approx(0.5)  # a text like any other, and no city of that name
    table = {"0": {"Locate": {}}, "1": {"Filter": {"rows": "api_response_0", "least": 1}}}
    assert value(score(task(BEST), table), "types") == 0.75


def test_a_dangling_reference_meets_other_damage() -> None:
    """It costs execution and nothing else, whatever else is wrong."""
    calls = {"0": {"Locate": {"x": 1}}, "1": {"Filter": {"rows": "API_RESPONSE_1", "least": "much"}}}
    reward = score(task(BEST), calls)
    assert [value(reward, name) for name in ("parameters", "types", "execution")] == [0.75, 0.75, 0]
    assert reward.total == pytest.approx(0.35)
    unknown = score(task(BEST), {"0": {"Locat": {}}, "1": {"Find": {"place": "API_RESPONSE_7"}}})
    assert unknown.total == pytest.approx(0.1)


def test_each_turn_refers_to_its_own_calls() -> None:
    first = text({"0": {"Locate": {}}})
    for reference, total in (("API_RESPONSE_0", 1.0), ("API_RESPONSE_1", 0.4), ("API_RESPONSE_1000000000", 0.4)):
        turn = {"0": {"Locate": {}}, "1": {"Find": {"place": reference}}}
        if reference == "API_RESPONSE_1":
            turn = {"0": turn["1"]}  # the first turn has a call 0, and the joined program a call 1: this one
        attempt = cw.Attempt(task([{"rows": ROWS["Rome"]}]), [first, text(turn)], cw.parser("json"))
        assert cw.reward("tier").score_attempt(attempt).total == pytest.approx(total)
    for late in ("API_RESPONSE_0", "API_RESPONSE_x", "API_RESPONSE_9"):
        turns = [first, text({"0": {"Find": {"place": late}}}), text({"0": {"Locate": {}}})]
        attempt = cw.Attempt(task([{"place": "Rome"}]), turns, cw.parser("json"))
        assert cw.reward("tier").score_attempt(attempt).total == pytest.approx(0.4)
        assert attempt.program is not None
        assert len(attempt.program.dangling) == 1


def test_a_second_block_closes_the_format() -> None:
    best, wrong = text(GOOD), text({"0": {"Locate": {}}})
    two = best + "\n" + wrong[wrong.index("<tool_call") :]
    quoted = best.replace("so", f"I could write {wrong} but")
    for completion in (two, quoted, best + best):
        for recipe in ("tier", "tier-guarded", "tier-strict", "simple", "tier-no-parse", "tier-no-execution"):
            reward = cw.reward(recipe).score(task(BEST), completion)
            assert (reward.total, reward.stage) == (0, "format")
            assert reward.scores["format"].score.evidence[0].code == "second_block"
    released = cw.reward("tier-released")
    assert released.score(task(BEST), two).total == released.score(task(BEST), best).total  # it reads the first
    unusable = text({"0": {"Locate": "x"}})
    assert cw.reward("tier").score(task(BEST), unusable + two).total == 0
    turns = cw.Attempt(task(BEST), [text({}), two], cw.parser("json"))
    reward = cw.reward("tier").score_attempt(turns)
    assert "turn 2" in reward.explain()
    assert reward.total == 0


def test_several_blocks_are_one_answer_where_the_form_says_so() -> None:
    call = '<tool_call>\n{"name": "Locate", "arguments": {}}\n</tool_call>'
    of = task([{"place": "Rome"}, {"place": "Rome"}], "all")
    for recipe in ("tier", "tier-strict"):
        assert cw.reward(recipe).score(of, f"Two of them.\n{call}\n{call}", ir="hermes").total == 1.0


@pytest.mark.parametrize(
    ("completion", "strict"),
    [
        (text(GOOD).replace("so", "I write a <tool_call> block"), 1.0),
        (f" \n{text(GOOD)}\n\n", 1.0),
        (f"Sure.\n{text(GOOD)}", 0.0),
        (f"{text(GOOD)}\nDone!", 0.0),
        (f"{text(GOOD)} as a <tool_call> block", 0.0),
    ],
)
def test_text_around_the_blocks(completion: str, strict: float) -> None:
    assert cw.reward("tier").score(task(BEST), completion).total == 1.0
    reward = cw.reward("tier-strict").score(task(BEST), completion)
    assert reward.total == strict
    if not strict:
        assert reward.scores["format"].score.evidence[0].code == "stray_text"


@pytest.mark.parametrize(
    ("ir", "body"),
    [
        ("json", '{"0": {"Find": {"place": "Rome", "place": "Oslo"}}}'),
        ("xml", '<api id="0"><name>Find</name><param name="place" type="string">Rome</param>'
                '<param name="place" type="string">Oslo</param></api>'),
        ("direct", "[Find(place='Rome', place='Oslo')]"),
    ],
)  # fmt: skip
def test_duplicate_argument_key(ir: str, body: str) -> None:
    for recipe in ("tier", "tier-guarded", "tier-strict"):
        reward = cw.reward(recipe).score(task(BEST), text(body), ir=ir)
        assert reward.total == pytest.approx(0.1)
        assert reward.stage == "parse"
        (evidence,) = reward.scores["parameters"].score.evidence
        assert evidence.code == "duplicate_key"
        assert "duplicate argument key 'place'" in evidence.reason
        assert "parameters 0/1: " in reward.explain()
        assert "names 0/1" not in reward.explain()
        assert [value(reward, name) for name in ("names", "types", "execution", "answer")] == [0, 0, 0, 0]


def test_direct_form_without_return() -> None:
    both = task([{"rows": ROWS["Rome"]}, {"rows": ROWS["Oslo"]}], "all")
    body = "[Find(place='Rome'), Find(place='Oslo')]"
    bare = f"<think>so</think><tool_call>{body}</tool_call>"
    chained = "<think>so</think><tool_call>[Locate(), Find(place=API_RESPONSE_0)]</tool_call>"
    tier = cw.reward("tier")
    assert tier.score(both, bare, ir="direct").total == tier.score(both, text(body, "all"), ir="direct").total == 1.0
    assert tier.score(task([{"rows": ROWS["Rome"]}]), chained, ir="direct").total == 1.0
    every = task([{"place": "Rome"}, {"rows": ROWS["Rome"]}], "all")
    assert tier.score(every, chained, ir="direct").total == pytest.approx(0.5)  # which needs the attribute
    assert tier.score(every, chained.replace("call>[", 'call return="all">['), ir="direct").total == 1.0


def test_ids() -> None:
    shifted = text(GOOD).replace('"2":', '"30":').replace('"1":', '"20":').replace('"0":', '"10":')
    shifted = shifted.replace("API_RESPONSE_1", "API_RESPONSE_20").replace("API_RESPONSE_0", "API_RESPONSE_10")
    assert cw.reward("tier").score(task(BEST), shifted).total == 1.0
    backwards = dict(reversed(list(GOOD.items())))
    assert score(task(BEST), backwards).total == 1.0
    assert score(task(BEST), '{"0": {"Locate": {}}, "0": {"Locate": {}}}').total == 0
    assert score(task(BEST), {"a": {"Locate": {}}}).total == 0


def test_two_tools_under_one_id() -> None:
    assert score(task([{"place": "Rome"}]), {"0": {"Locate": {}, "Find": {"place": "Rome"}}}).total == 0
    assert score(task([{"place": "Rome"}]), {"0": {}}).total == 0


@pytest.mark.parametrize("arguments", ["x", None, 3, []])
def test_arguments_that_are_no_object(arguments: Any) -> None:
    for recipe in ("tier", "tier-released"):
        reward = score(task(BEST), {"0": {"Locate": arguments}}, recipe=recipe)
        assert reward.total == pytest.approx(0.1)


def test_unknown_name_closes_the_parse_terms() -> None:
    reward = score(task(BEST), {"0": {"Locat": {}}})
    assert [value(reward, name) for name in ("names", "parameters", "types")] == [0, 0, 0]
    assert reward.total == pytest.approx(0.1)
    released = score(task(BEST), {"0": {"Locat": {}}, "1": {"Locate": {}}}, recipe="tier-released")
    assert [value(released, name) for name in ("names", "parameters", "types", "execution")] == [0, 1, 1, 1]


def test_names_are_those_offered() -> None:
    offered = task([{"place": "Rome"}], offered=("Find",))
    reward = score(offered, {"0": {"Locate": {}}})
    assert value(reward, "names") == 0
    assert value(reward, "execution") == 0
    assert score(task([{"place": "Rome"}]), {"0": {"Locate": {}}}).total == 1.0


def test_nested_required_parameter() -> None:
    reward = score(task(BEST), {"0": {"Order": {"buyer": {"name": "A"}, "items": [{"sku": "s"}]}}})
    assert value(reward, "parameters") == 0.5
    assert [evidence.path for evidence in reward.scores["parameters"].score.evidence] == ["buyer.city", "items[0].qty"]
    assert value(score(task(BEST), {"0": {"Order": {}}}), "parameters") == 0.75
    assert value(score(task(BEST), {"0": {"Order": {}}}, recipe="tier-released"), "parameters") == 1


def test_one_mismatch_per_place() -> None:
    reward = score(task(BEST), {"0": {"Locate": {"extra": {"a": 1, "b": 2}}}})
    assert value(reward, "parameters") == 0.75
    assert (
        value(score(task(BEST), {"0": {"Locate": {"extra": {"a": 1, "b": 2}}}}, recipe="tier-released"), "parameters")
        == 0.5
    )
    scalar = score(task(BEST), {"0": {"Order": {"buyer": "me"}}})
    assert (value(scalar, "parameters"), value(scalar, "types")) == (1, 0.75)


def test_integer_is_a_number() -> None:
    assert value(score(task(BEST), {"0": {"Find": {"place": "Rome", "radius": 3}}}), "types") == 1
    assert value(score(task(BEST), {"0": {"Find": {"place": "Rome", "limit": 3.0}}}), "types") == 1
    assert (
        value(score(task(BEST), {"0": {"Find": {"place": "Rome", "radius": 3}}}, recipe="tier-released"), "types")
        == 0.75
    )
    assert (
        value(score(task(BEST), {"0": {"Find": {"place": "Rome", "limit": 3.0}}}, recipe="tier-released"), "types")
        == 0.75
    )


def test_bool_is_no_number() -> None:
    calls = {"0": {"Find": {"place": "Rome", "limit": True, "radius": False}}}
    assert value(score(task(BEST), calls), "types") == 0.5
    assert value(score(task(BEST), calls, recipe="tier-released"), "types") == 0.75


def test_reference_has_the_type_of_its_result() -> None:
    calls = {"0": {"Locate": {}}, "1": {"Filter": {"rows": "API_RESPONSE_0", "least": 1}}}
    reward = score(task(BEST), calls)
    assert value(reward, "types") == 0.75
    assert "string" in str(reward.scores["types"].score.evidence[0])
    literal = score(task(BEST), {"0": {"Filter": {"rows": [{"stars": 5}], "least": 1}}})
    assert value(literal, "types") == 0.75


def test_enumerations_are_not_graded() -> None:
    attempt = cw.Attempt(task(BEST), text({"0": {"Find": {"place": "Rome", "mode": "sideways"}}}), cw.parser("json"))
    reward = cw.reward("tier").score_attempt(attempt)
    assert value(reward, "types") == value(reward, "parameters") == 1
    assert attempt.validation is not None
    assert [mismatch.path for mismatch in attempt.validation.values] == ["mode"]


def test_execution_needs_every_call() -> None:
    broken = {"0": {"Find": {}}, "1": {"Locate": {}}}
    reward = score(task([{"place": "Rome"}]), broken)
    assert value(reward, "execution") == 0
    assert reward.scores["answer"].closed


def test_recorded_error_is_a_result() -> None:
    answer = [{"status_code": 404, "error": "no such place"}]
    assert score(task(answer), {"0": {"Find": {"place": "Atlantis"}}}).total == 1.0


def test_trajectory_invariance() -> None:
    extra = {"0": {"Find": {"place": "Oslo"}}}
    extra |= {str(int(key) + 1): call for key, call in GOOD.items()}
    moved = json.loads(
        json.dumps(extra).replace("API_RESPONSE_1", "API_RESPONSE_2").replace("API_RESPONSE_0", "API_RESPONSE_1")
    )
    assert score(task(BEST), moved).total == 1.0
    assert value(score(task(BEST), moved, recipe="tier-released"), "answer") == 0
    both = [{"rows": ROWS["Rome"]}, {"rows": ROWS["Oslo"]}]
    swapped = {"0": {"Find": {"place": "Oslo"}}, "1": {"Find": {"place": "Rome"}}}
    assert score(task(both, "all"), swapped, "all").total == 1.0


def test_repeated_call_returns_twice() -> None:
    both = [{"rows": ROWS["Rome"]}, {"rows": ROWS["Oslo"]}]
    calls = {"0": {"Find": {"place": "Oslo"}}, "1": {"Find": {"place": "Rome"}}, "2": {"Find": {"place": "Rome"}}}
    assert value(score(task(both, "all"), calls, "all"), "answer") == 0


def test_answer_needs_execution() -> None:
    calls = {"0": {"Nothing": {}}, "1": {"Locate": {}}}
    reward = score(task([{"place": "Rome"}]), calls)
    assert reward.total == pytest.approx(0.1)
    assert score(task([{"place": "Rome"}]), calls, recipe="simple").total == 1.0


def test_wrong_abstention() -> None:
    assert score(task(BEST), {}).total == pytest.approx(0.5)
    assert score(task(BEST), {}, recipe="tier-guarded").total == pytest.approx(0.1)
    for recipe in ("tier", "tier-guarded", "simple", "tier-no-parse", "tier-no-execution", "tier-released"):
        assert score(task([]), {}, recipe=recipe).total == pytest.approx(1.0)
    assert score(task(BEST), GOOD, recipe="tier-guarded").total == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("recipe", "partial"), [("simple", 1 / 6), ("tier-no-parse", 2 / 7), ("tier-no-execution", 4 / 9), ("tier", 5 / 10)]
)
def test_ablations_are_renormalised(recipe: str, partial: float) -> None:
    assert score(task(BEST), GOOD, recipe=recipe).total == pytest.approx(1.0)
    assert score(task(BEST), {"0": {"Locate": {}}}, recipe=recipe).total == pytest.approx(partial)


def test_thought_may_mention_the_tag() -> None:
    said = text(GOOD).replace("so", "I write a <tool_call> block & think 1 < 2")
    assert cw.reward("tier").score(task(BEST), said).total == 1.0


def test_plain_text_in_strings() -> None:
    answer = [{"order": {"buyer": {"name": "A & B (x) <y>", "city": "]"}}}]
    calls = {"0": {"Order": {"buyer": {"name": "A & B (x) <y>", "city": "]"}}}}
    assert score(task(answer), calls).total == 1.0


def test_xml_type_is_never_evaluated() -> None:
    body = '<api id="0"><name>Find</name><param name="place" type="eval">"Ro" + "me"</param></api>'
    reward = score(task([{"rows": ROWS["Rome"]}]), body, ir="xml")
    assert reward.total is not None
    assert reward.total <= 0.1


def test_official_tag(tmp_path: Path) -> None:
    from callwright_plugins.recorded.environment import RecordedEnvironment

    definitions = {
        name: {"name": name, "parameters": {"type": "dict", "properties": {}}} for name in ("GetTime", "Other")
    }
    (tmp_path / "function_definitions.json").write_text(json.dumps(definitions))
    row = {"scenario": "A", "tool": "GetTime", "arguments": {}, "status": "ok", "value": "8:00"}
    (tmp_path / "cassette.jsonl").write_text(json.dumps(row) + "\n")
    world = RecordedEnvironment(tmp_path, scenario_tools={"GetTime": "tag"})
    of = cw.Task(id="t", query="?", tools=world.tools, answer=cw.Answer(("8:00",)), environment=world, scenario="A")
    assert score(of, {"0": {"GetTime": {}}}).total == 1.0
    assert score(of, {"0": {"GetTime": {"tag": "A"}}}).total == 1.0
    assert score(of, {"0": {"GetTime": {"tag": "B"}}}).masked is not None
    assert value(score(of, {"0": {"Other": {"tag": "A"}}}), "parameters") == 0.75


def test_every_test_named_in_the_page_exists() -> None:
    root = Path(__file__).resolve().parents[3]
    named = set(re.findall(r"`(test_\w+)`", (root / "docs" / "divergences.md").read_text(encoding="utf-8")))
    defined = {
        name
        for file in (root / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }
    assert named <= defined, named - defined
    assert len(named) > 20
