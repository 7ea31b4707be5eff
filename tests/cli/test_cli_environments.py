"""``callwright env``: list, tools, call, shell, snapshot, diff, as their users type them."""

from __future__ import annotations

import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cli_library import library

from callwright.cli.environment_shell import Shell, _lines
from callwright.cli.environment_state import write_state
from callwright.cli.state_files import compare
from callwright.commands.terminal import screen
from callwright.plugins import load_plugins


@pytest.fixture
def env(invoke: Any) -> Any:
    import cli_library

    registry = load_plugins(extra={"library": cli_library}, entry_points=False)

    def run(*words: str | Path, input: str | None = None) -> Any:
        return invoke("env", *words, input=input, plugins=registry)

    return run


def test_list_as_json(env: Any) -> None:
    assert json.loads(env("list", "--json").stdout) == [
        {"name": "library", "tools": 4, "scenarios": ["typical", "none"]}
    ]
    assert "library" in env("list").stdout


def test_tools(env: Any) -> None:
    rows = json.loads(env("tools", "library", "--json").stdout)
    assert [row["name"] for row in rows] == ["list_books", "lend", "donate", "burn"]
    assert rows[3]["annotations"] == {
        "read_only": False, "destructive": True, "idempotent": False, "discovery": False, "sensitive": False,
    }  # fmt: skip
    assert rows[1]["parameters"]["required"] == ["book_id"]
    assert rows[1]["result"]["required"] == ["id", "copies"]
    assert "audit" in env("tools", "library", "--toolset", "audits").stdout
    functions = json.loads(env("tools", "library", "lend", "--openai").stdout)
    assert [function["function"]["name"] for function in functions] == ["lend"]
    assert "Which book." in env("tools", "library", "lend").stdout


def test_a_wrong_name_gets_the_nearest(env: Any) -> None:
    result = env("tools", "library", "lent")
    assert result.exit_code == 2
    assert "Did you mean 'lend'" in result.stderr
    assert env("tools", "libary").exit_code == 2


def test_call(env: Any) -> None:
    result = env("call", "library", "lend", "--arg", "book_id=B00003", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (found["kind"], found["value"]) == ("ok", {"id": "B00003", "copies": 1})
    assert found["diff"] == {"books": {"changed": {"B00003": {"copies": [2, 1]}}}}
    assert "~ books B00003 copies: 2 -> 1" in env("call", "library", "lend", "--arg", "book_id=B00003").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lend", "--arg", "book_id=B00001"], "NONE_LEFT"),
        (["lend", "--arg", "book_id=5"], "NOT_FOUND"),
        (["lend"], "missing"),
        (["_reset"], "unknown_tool"),
        (["lend", "--arguments", '{"book_id": 5}'], "schema_error"),
    ],
)
def test_a_call_that_fails_says_how_and_exits_with_1(env: Any, words: list[str], said: str) -> None:
    result = env("call", "library", *words)
    assert (result.exit_code, said in result.stdout) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        ["lend", "--arg", "book_id"],
        ["lend", "--arguments", "{"],
        ["lend", "--arguments", "[]"],
        ["lend", "--scenario", "tpical"],
        ["lend", "--scale", "-1"],
        ["lend", "--option", "colour=1"],
    ],
)
def test_a_wrong_command_line_exits_with_2(env: Any, words: list[str]) -> None:
    result = env("call", "library", *words)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_one_call_follows_another(env: Any, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    for left in (3, 2):
        found = env("call", "library", "lend", "--arg", "book_id=B00005", "--state", state, "--json")
        assert json.loads(found.stdout)["value"]["copies"] == left
    first = tmp_path / "first.json"
    assert env("snapshot", "library", "-o", first).exit_code == 0
    assert json.loads(first.read_text()) == json.loads(env("snapshot", "library").stdout)
    refused = env("snapshot", "library", "--seed", "7", "-o", first)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert json.loads(first.read_text()) == json.loads(env("snapshot", "library").stdout)
    assert env("snapshot", "library", "--overwrite", "-o", first).exit_code == 0
    compared = env("diff", first, state, "--json")
    assert compared.exit_code == 1
    assert json.loads(compared.stdout) == {"books": {"changed": {"B00005": {"copies": [4, 2]}}}}
    assert env("diff", first, first).exit_code == 0
    assert "copies: 4 -> 2" in env("diff", first, state).stdout


def test_one_call_follows_another_in_several_environments(invoke: Any, tmp_path: Path) -> None:
    registry = load_plugins()

    def env(*words: str | Path) -> Any:
        return invoke("env", *words, plugins=registry)

    state, first = tmp_path / "state.json", tmp_path / "first.json"
    pair = "email+calendar"
    for subject in ("Tea", "Cake"):
        found = env("call", pair, "create_draft", "--arg", f"subject={subject}", "--arg", "body=?", "--state", state)
        assert found.exit_code == 0, found.output
    assert env("snapshot", pair, "-o", first).exit_code == 0
    compared = json.loads(env("diff", first, state, "--json").stdout)
    assert [one["subject"] for one in compared["email.drafts"]["added"].values()] == ["Tea", "Cake"]
    assert set(compared) <= {"email.drafts", "clock"}
    for other, whose in (("email", "several environments"), (pair, "one environment")):
        if other == pair:
            assert env("snapshot", "email", "-o", state, "--overwrite").exit_code == 0
        refused = env("call", other, "list_folders", "--state", state)
        assert refused.exit_code == 2
        assert f"state.json is a snapshot of {whose}" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("text", ["{", "[]", '{"now": 1}', '{"now": 1, "tables": {"x": [1]}}'])
def test_a_file_that_is_no_snapshot_is_named(env: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    for words in (["diff", path, path], ["call", "library", "list_books", "--state", path]):
        result = env(*words)
        assert result.exit_code == 2
        assert "bad.json" in result.stderr
    assert path.read_text() == text


def test_shell_reads_a_script(env: Any, tmp_path: Path) -> None:
    saved = tmp_path / "s.json"
    lines = [
        "# a comment", "", "lend book_id=B00003", ":undo", ":undo", 'donate {"title": "New one"}', ":diff",
        f":save {saved}", ":reset none", "list_books", f":load {saved}", "list_books cursor=5",
        ":helper _count table=books", ":helper", ":digest", ":nothing", ":tools", ":tools lend", ":tools nope",
        ":save", ":load nowhere", ":help",
        "lend {", ":quit", "donate title=never",
    ]  # fmt: skip
    result = env("shell", "library", input="\n".join(lines))
    assert result.exit_code == 0
    out = result.stdout
    assert "~ books B00003 copies: 2 -> 1" in out
    assert '+ books B00006 {"id": "B00006", "title": "New one", "copies": 1}' in out
    assert out.index("empty") < out.index('"count": 6')
    assert "never" not in out
    for said in (
        "nothing to take back",
        "there is no :nothing",
        "name one: _reset",
        "needs a file",
        "there is no file",
    ):
        assert said in result.stderr
    assert "nope" in result.stderr


def test_what_is_taken_back_is_the_last_change_whatever_made_it(env: Any, tmp_path: Path) -> None:
    environment = library()
    session = environment.open()
    write_state(environment.open("none"), tmp_path / "none.json")
    for line in (":reset none", f":load {tmp_path / 'none.json'}", ":helper _load_scenario name=none"):
        shell = Shell(environment, session.fork())
        shell.run("lend book_id=B00003")
        lent = shell.session.digest()
        shell.run(line)
        assert shell.session.digest() != lent, line
        shell.run(":reset nowhere")  # which changes nothing
        shell.run(":undo")
        assert shell.session.digest() == lent, line
        shell.close()


def test_rows_have_the_same_key_in_both_snapshots() -> None:
    def state(*rows: dict[str, Any]) -> dict[str, Any]:
        return {"now": 0, "tables": {"lines": [*rows]}}

    one, two, three = {"order": 1, "item": "a"}, {"order": 1, "item": "b"}, {"order": 1}
    assert compare(state(one), state(one, two)) == {"lines": {"added": {"1/b": two}}}
    assert compare(state(one, two), state(one)) == {"lines": {"removed": {"1/b": two}}}
    assert compare(state(one), state(three)) == {"lines": {"changed": {"1": {"item": ["a", None]}}}}
    assert compare(state(one), state(one, three)) == {"lines": {"added": {"1/None": three}}}
    assert compare(state(), state(one)) == {"lines": {"added": {"1": one}}}
    assert compare(state(), state()) == {}


def test_completion() -> None:
    environment = library()
    shell = Shell(environment, environment.open())
    assert shell.complete("le", "le") == ["lend "]
    assert shell.complete(":re", ":re") == [":reset "]
    assert shell.complete("lend ", "") == ["book_id=", "how="]
    assert shell.complete("lend book_id=x h", "h") == ["how="]
    assert shell.complete("lend how=", "how=") == ["how=short", "how=long"]
    assert shell.complete("lend book_id=B", "book_id=B") == []
    shell.run("list_books")
    assert "book_id=B00004" in shell.complete("lend book_id=B", "book_id=B")
    assert shell.complete(":helper _re", "_re") == ["_reset"]
    assert shell.complete(":reset t", "t") == ["typical"]
    assert shell.complete(":tools do", "do") == ["donate"]
    assert shell.complete("nothing x", "x") == []


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ('{"book_id": "B00003", "book_id": "B00001"}', "'book_id' is there twice"),
        ('{"book_id": NaN}', "--arguments is not JSON"),
        ('{"book_id": "\\ud800"}', "half of a surrogate pair"),
        ("[" * 100_000, "--arguments is not JSON"),
        ("9" * 5_000, "--arguments is not JSON"),
    ],
)
def test_arguments_are_json_as_models_must_write_it(env: Any, document: str, said: str) -> None:
    result = env("call", "library", "lend", "--arguments", document)
    assert (result.exit_code, said in result.stderr) == (2, True)
    assert "Traceback" not in result.stderr


def test_what_is_no_strict_json_is_text_in_a_pair(env: Any) -> None:
    assert "'NaN'" in env("call", "library", "lend", "--arg", "book_id=NaN").stdout


def test_a_state_goes_into_a_pipe_as_into_a_file(tmp_path: Path) -> None:
    session = library().open()
    write_state(session, tmp_path / "file")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as thread:
        read = thread.submit(pipe.read_text, "utf-8")
        write_state(session, pipe)
        assert read.result(60) == (tmp_path / "file").read_text("utf-8")
    assert pipe.is_fifo()


def test_a_reader_that_goes_away_is_told_apart_from_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Gone())
    with pytest.raises(BrokenPipeError):
        screen().print("a line")


def test_ctrl_c_stops_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    class Waiting(io.StringIO):
        def readline(self, size: int | None = -1, /) -> str:
            raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin", Waiting())
    with pytest.raises(KeyboardInterrupt):
        next(iter(_lines("> ", interactive=False)))
