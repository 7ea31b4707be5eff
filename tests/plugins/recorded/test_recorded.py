"""Recording an environment and answering from the recording."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from click.testing import CliRunner

import callwright as cw
from callwright.environments.protocol import Outcome, Session
from callwright.errors import DataError, FolderTaken, InfrastructureFailure
from callwright.pipeline import build_pipeline
from callwright_plugins.recorded.command import record
from callwright_plugins.recorded.environment import RecordedEnvironment
from callwright_plugins.recorded.fingerprint import fingerprint, remember
from callwright_plugins.recorded.recording import RecordingEnvironment


@define
class Account:
    balance: int = 100
    log: list[int] = field(factory=list)


@cw.tool
def pay(account: Account, /, amount: int) -> dict[str, int]:
    """Pay an amount."""
    if amount > account.balance:
        raise cw.ToolError("insufficient_funds", "the balance is too small")
    account.balance -= amount
    return {"balance": account.balance}


@cw.tool(read_only=True, result_field="balance")
def balance(account: Account, /) -> dict[str, int]:
    """The balance."""
    return {"balance": account.balance}


@cw.tool(read_only=True)
def history(account: Account, /) -> list[int]:
    """Nothing yet."""
    return []


def bank() -> cw.Environment:
    return cw.environment(
        "bank", tools=[pay, balance, history], state=lambda scenario, seed: Account(int(scenario or 100))
    )


SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("balance", {}),
    ("pay", {"amount": 30}),
    ("pay", {"amount": 30}),
    ("balance", {}),
    ("pay", {"amount": 300}),
    ("pay", {"amount": "much"}),
    ("history", {}),
    ("steal", {}),
    ("balance", {}),
]


def play(environment: cw.Environment, scenario: str) -> list[tuple[Any, ...]]:
    session = environment.open(scenario)
    seen: list[tuple[Any, ...]] = [(session.digest(),)]
    for tool, arguments in SCRIPT:
        outcome = session.call(tool, dict(arguments))
        seen.append((outcome.kind, outcome.value, outcome.code, outcome.message, session.digest()))
    session.close()
    return seen


def test_a_recording_answers_like_the_environment(tmp_path: Path) -> None:
    live = bank()
    recording = RecordingEnvironment(live, tmp_path)
    expected = {scenario: play(live, scenario) for scenario in ("100", "50")}
    assert {scenario: play(recording, scenario) for scenario in expected} == expected
    assert {scenario: play(RecordedEnvironment(tmp_path), scenario) for scenario in expected} == expected


def test_a_recording_is_read_once_while_it_is_in_use_and_anew_when_it_changes(tmp_path: Path) -> None:
    play(RecordingEnvironment(bank(), tmp_path), "100")
    first = RecordedEnvironment(tmp_path)
    assert RecordedEnvironment(tmp_path).recording is first.recording
    assert pickle.loads(pickle.dumps(first)).recording is first.recording
    play(RecordingEnvironment(bank(), tmp_path), "50")
    later = RecordedEnvironment(tmp_path)
    assert play(later, "50") == play(bank(), "50")
    assert later.recording is not first.recording


@pytest.mark.parametrize("told", ["a\u2028b\x85c\nd\r\ne\x0b", 10**5000], ids=["lines", "number"])
def test_texts_of_several_lines_and_long_numbers_are_read_again(told: Any, tmp_path: Path) -> None:
    @cw.tool(read_only=True)
    def page() -> str | int:
        """A text or a number."""
        return told  # type: ignore[no-any-return]

    live = cw.environment("pages", tools=[page], state=lambda scenario, seed: None)
    session = RecordingEnvironment(live, tmp_path).open("")
    session.call("page", {})
    session.close()
    assert RecordedEnvironment(tmp_path).open("").call("page", {}).value == told


def test_a_value_that_a_later_call_changes_is_recorded_as_it_was_told(tmp_path: Path) -> None:
    class Pages(Session):
        """Tells the very list that it writes in."""

        def __init__(self) -> None:
            self.pages: list[int] = []

        def call(self, tool: str, arguments: dict[str, Any]) -> Outcome:
            if tool == "write":
                self.pages.append(len(self.pages))
                return Outcome("ok", None)
            return Outcome("ok", self.pages)

        def digest(self) -> str:
            return str(len(self.pages))

        def close(self) -> None:
            pass

    class Book(cw.Environment):
        name, pure = "book", False

        @property
        def tools(self) -> Mapping[str, cw.ToolSpec]:
            return {tool: cw.ToolSpec.from_mcp({"name": tool, "inputSchema": {}}) for tool in ("write", "read")}

        def open(self, scenario: str = "", seed: int = 0) -> Session:
            return Pages()

    session = RecordingEnvironment(Book(), tmp_path).open()
    for tool in ("read", "write", "read"):
        session.call(tool, {})
    session.close()
    recorded = RecordedEnvironment(tmp_path).open()
    assert [recorded.call(tool, {}).value for tool in ("read", "write", "read")] == [[], None, [0]]


def test_recorded_tools_keep_their_specs(tmp_path: Path) -> None:
    live = bank()
    RecordingEnvironment(live, tmp_path)
    recorded = RecordedEnvironment(tmp_path).tools
    assert set(recorded) == set(live.tools)
    for name, spec in live.tools.items():
        assert recorded[name].read_only == spec.read_only
        assert recorded[name].result_field == spec.result_field
        assert recorded[name].parameters == spec.parameters


def test_each_call_is_written_once(tmp_path: Path) -> None:
    recording = RecordingEnvironment(bank(), tmp_path)
    play(recording, "100")
    first = (tmp_path / "cassette.jsonl").read_bytes()
    assert recording.rows == len(first.splitlines())
    play(recording, "100")
    again = RecordingEnvironment(bank(), tmp_path)
    play(again, "100")
    assert again.rows == 0
    assert (tmp_path / "cassette.jsonl").read_bytes() == first


def test_an_unrecorded_call_masks_the_sample(tmp_path: Path) -> None:
    recording = RecordingEnvironment(bank(), tmp_path)
    session = recording.open("100")
    session.call("balance", {})
    session.close()
    world = RecordedEnvironment(tmp_path)
    task = cw.Task(
        id="t", query="?", tools=world.tools, answer=cw.Answer(({"balance": 70},)), environment=world, scenario="100"
    )
    text = '<think>\n\n</think>\n<tool_call return="one">\n{"0": {"pay": {"amount": 30}}}\n</tool_call>'
    for recipe in ("tier", "simple", "tier-released", "tier-no-parse"):
        reward = cw.reward(recipe).score(task, text)
        assert reward.total is None
        assert reward.masked is not None
        assert "not_recorded" in reward.masked


def test_the_programs_own_failure_is_not_masked(tmp_path: Path) -> None:
    """A call that failed by the program's own fault decides the execution term, whatever the machinery does later."""
    recording = RecordingEnvironment(bank(), tmp_path)
    session = recording.open("100")
    session.call("pay", {"amount": 300})
    session.close()
    world = RecordedEnvironment(tmp_path)
    task = cw.Task(id="t", query="?", tools=world.tools, answer=cw.Answer((1,)), environment=world, scenario="100")
    calls = '{"0": {"pay": {"amount": 300}}, "1": {"pay": {"amount": 1}}}'
    text = f'<think>\n\n</think>\n<tool_call return="one">\n{calls}\n</tool_call>'
    assert cw.reward("tier").score(task, text).total == pytest.approx(0.4)
    assert cw.reward("simple").score(task, text).total is None


def test_infrastructure_failures_are_not_recorded(tmp_path: Path) -> None:
    @cw.tool
    def flaky() -> int:
        """Fails."""
        raise InfrastructureFailure("the server is away")

    recording = RecordingEnvironment(cw.environment("flaky", tools=[flaky]), tmp_path)
    session = recording.open()
    with pytest.raises(InfrastructureFailure):
        session.call("flaky", {})
    session.close()
    assert recording.rows == 0
    assert not (tmp_path / "cassette.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda folder: (folder / "function_definitions.json").unlink(), "function_definitions.json is missing"),
        (lambda folder: (folder / "function_definitions.json").write_text("{"), "not valid JSON"),
        (lambda folder: (folder / "function_definitions.json").write_text("[]"), "expected an object"),
        (lambda folder: (folder / "cassette.jsonl").write_text('{"a": 1}\nx\n'), "cassette.jsonl:1"),
        (lambda folder: (folder / "cassette.jsonl").write_text("\nnot json\n"), "cassette.jsonl:2: not valid JSON"),
        (lambda folder: (folder / "cassette.jsonl.gz").write_bytes(b"\x1f\x8b not gzip"), "cannot be read"),
        (lambda folder: (folder / "cassette.jsonl.gz").write_bytes(b"not gzip"), r"jsonl\.gz:1: not valid JSON"),
    ],
)
def test_bad_recordings_are_named(tmp_path: Path, change: Callable[[Path], Any], says: str) -> None:
    (tmp_path / "function_definitions.json").write_text(json.dumps({"f": {"parameters": {}}}))
    change(tmp_path)
    with pytest.raises(DataError, match=says):
        RecordedEnvironment(tmp_path)


def test_compressed_recordings_are_read(tmp_path: Path) -> None:
    play(RecordingEnvironment(bank(), tmp_path), "100")
    data = (tmp_path / "cassette.jsonl").read_bytes()
    (tmp_path / "cassette.jsonl").unlink()
    (tmp_path / "cassette.jsonl.gz").write_bytes(gzip.compress(data))
    assert play(RecordedEnvironment(tmp_path), "100") == play(bank(), "100")


def test_what_is_recorded_beside_a_compressed_recording_is_added_to_it(tmp_path: Path) -> None:
    play(RecordingEnvironment(bank(), tmp_path), "100")
    data = (tmp_path / "cassette.jsonl").read_bytes()
    (tmp_path / "cassette.jsonl").unlink()
    (tmp_path / "cassette.jsonl.gz").write_bytes(gzip.compress(data))
    play(RecordingEnvironment(bank(), tmp_path), "50")
    for scenario in ("100", "50"):
        assert play(RecordedEnvironment(tmp_path), scenario) == play(bank(), scenario)
    assert (tmp_path / "cassette.jsonl").read_bytes().startswith(data)


def test_texts_with_ends_of_lines_of_unicode_are_recorded(tmp_path: Path) -> None:
    @cw.tool(read_only=True)
    def say(text: str) -> str:
        """Say it."""
        return text

    spoken = "one\u2028two\u0085three\x0bfour"
    recording = RecordingEnvironment(cw.environment("echo", tools=[say]), tmp_path)
    session = recording.open()
    session.call("say", {"text": spoken})
    session.close()
    assert RecordedEnvironment(tmp_path).open().call("say", {"text": spoken}).value == spoken


def test_a_session_begins_in_the_world_of_its_seed(tmp_path: Path) -> None:
    def first(environment: Any, seed: int) -> tuple[str, Any]:
        session = environment.open("typical", seed)
        try:
            return session.digest(), session.call("find_customer", {"limit": 3}).value
        finally:
            session.close()

    live = cw.environment("banking")
    for _ in range(2):  # the second one finds the first states in the files
        recording = RecordingEnvironment(live, tmp_path)
        expected = {seed: first(recording, seed) for seed in (4, 0, 7)}
    assert recording.rows == 0
    recorded = RecordedEnvironment(tmp_path)
    assert {seed: first(recorded, seed) for seed in expected} == expected == {s: first(live, s) for s in expected}
    assert first(recorded, 99) == expected[4]


def test_fingerprints_tell_values_apart_and_do_not_depend_on_identity() -> None:
    values = [1, 1.0, True, "1", None, "null", [], {}, [[]], [1], [1.0], {"a": 1}, {"a": "1"}, ["a", "b"], ["a,b"]]
    values += [[{"k": index, "text": "x" * 100}] for index in range(5)]
    prints = [fingerprint(value, {}) for value in values]
    assert len(set(prints)) == len(values)
    known: dict[int, str] = {}
    kept = [remember(value, known, {}) for value in values]
    assert [fingerprint(value, known) for value in kept] == prints
    assert fingerprint({"b": 1, "a": 2}, {}) == fingerprint({"a": 2, "b": 1}, {})


def test_the_command_records_programs_and_calls(tmp_path: Path) -> None:
    corpus = cw.corpus("toolworld-mini-v1")
    folder = tmp_path / "world"
    options = ["--corpus", "toolworld-mini-v1", "--split", "evaluation", "-o", str(folder), "--json"]
    result = CliRunner().invoke(record, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["programs"] == corpus.splits["evaluation"]
    world = RecordedEnvironment(folder)
    parser, tier = cw.parser("json"), cw.reward("tier")
    for task in corpus["evaluation"]:
        assert task.program is not None
        replayed = evolve(task, environment=world)
        assert tier.score(replayed, parser.render(task.program)).total == pytest.approx(1.0)
    calls = tmp_path / "calls.jsonl"
    calls.write_text(json.dumps({"scenario": corpus["evaluation"][0].scenario, "tool": "Nope", "arguments": {}}) + "\n")
    options = ["--environment", "toolworld-mini-v1", "--calls", str(calls), "-o", str(tmp_path / "calls")]
    result = CliRunner().invoke(record, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "calls" / "cassette.jsonl").read_text())["status"] == "missing"


def test_a_recording_of_other_tools_is_not_spoilt(tmp_path: Path) -> None:
    folder = tmp_path / "recording"
    play(RecordingEnvironment(bank(), folder), "100")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(FolderTaken, match="of other tools than those of 'banking', such as 'balance'"):
        RecordingEnvironment(cw.environment("banking"), folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_recipe_runs_on_a_recording(tmp_path: Path) -> None:
    """The environment of a recipe takes the place of the corpus' own; here it has recorded one program."""
    from callwright.recipe_file import parse_recipe

    corpus = cw.corpus("toolworld-mini-v1")
    recording = RecordingEnvironment(corpus.environment, tmp_path)
    parser = cw.parser("json")
    kept, other = [task for task in corpus["evaluation"] if task.depth == 3][:2]
    assert kept.program is not None
    assert other.program is not None
    assert cw.Attempt(evolve(kept, environment=recording), parser.render(kept.program), parser).trace is not None
    text = f'[corpus]\nname = "toolworld-mini-v1"\n[environment]\nname = "recorded"\ndata = "{tmp_path}"\n'
    pipeline = build_pipeline(parse_recipe(text), cw.default_registry(), with_algorithm=False)
    tasks = {task.id: task for task in pipeline.tasks("evaluation")}
    scored = [
        pipeline.score(pipeline.attempt(tasks[task.id], parser.render(task.program))).total  # type: ignore[arg-type]
        for task in (kept, other)
    ]
    assert scored == [pytest.approx(1.0), None]
