"""Bamboogle: rounds of search, judges, and what is counted of them."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root as cli
from callwright.commands.app import App
from callwright.episodes.conversation import Conversation
from callwright.errors import DataError, InfrastructureFailure, UsageError
from callwright.measuring.benchmark import Judged, Judgement
from callwright.training import TeacherFailure, TeacherReply, TeacherRequest
from callwright.walk.limits import limits_of
from callwright.walk.prompt import build_messages
from callwright_plugins.bamboogle.benchmark import Bamboogle
from callwright_plugins.bamboogle.judging import Asked, Contains, normalised, read_judgment
from callwright_plugins.bamboogle.search import SHOWN, Recorded, Serper, made_search, shown

JSON = cw.parser("json")
ROWS = [
    {"Question": "When did the last king from Britain's House of Hanover die?", "Answer": "20 June 1837"},
    {"Question": "The husband of Lady Godiva was Earl of which kingdom?", "Answer": "Mercia"},
]


class Library:
    """A search that knows one thing and counts how often it is asked."""

    name = "library"

    def __init__(self) -> None:
        self.queries: list[str] = []

    def find(self, query: str) -> str:
        self.queries.append(query)
        if "broken" in query:
            raise InfrastructureFailure("the library is closed")
        return "1. Godiva\n- Snippet: Leofric, Earl of Mercia"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data.json").write_text(json.dumps(ROWS))
    return tmp_path


def search(*queries: str) -> str:
    calls = tuple(cw.Call(number, "Search", {"query": query}) for number, query in enumerate(queries))
    return JSON.render(cw.Program(calls))


def say(words: str) -> str:
    return JSON.render(cw.Program((), text=words))


def judged(benchmark: Bamboogle, texts: list[str], number: int = 1) -> Judgement:
    task = benchmark.corpus.task(f"bamboogle-{number}")
    return benchmark.judge(task, cw.Attempt(task, texts, JSON))


# Answers --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "error", "calls"),
    [
        ([search("Lady Godiva's husband"), say("He was Earl of Mercia.")], "", 1),
        ([say("Mercia")], "", 0),
        (["<think>\nHm.\n</think>\nMercia, I think."], "", 0),  # without a form, as the release takes it
        ([search("a"), search("b", "c"), search("d"), say("the kingdom of MERCIA")], "", 3),  # rounds, not queries
        ([search("a"), say("Wessex")], "wrong_answer", 1),
        ([search("a"), search("b"), search("c"), search("d")], "no_answer", 4),
        ([search("a"), '<think>\n</think>\n<tool_call return="one">\n{"0": Mercia\n</tool_call>'], "no_answer", 1),
        ([""], "no_answer", 0),
    ],
)
def test_what_an_attempt_comes_to(folder: Path, texts: list[str], error: str, calls: int) -> None:
    library = Library()
    found = judged(Bamboogle(folder, search=library), texts)
    assert (found.correct, found.error, found.parts["calls"]) == (not error, error, calls)
    assert library.queries == []  # nothing is searched again to judge it


def test_gold_answers_are_right_by_the_shipped_rule(official_data: Path) -> None:
    path = official_data / "bamboogle"
    if not path.is_dir():
        pytest.skip("the questions of Bamboogle are not here (CALLWRIGHT_DATA)")
    benchmark = Bamboogle(path)
    assert len(benchmark.tasks()) >= 51
    for task in benchmark.tasks():
        gold = task.facts["answer"]
        for words in (gold, f"The answer is {gold}.", f"It was **{gold.upper()}**, as far as I know!"):
            assert benchmark.judge(task, cw.Attempt(task, say(words), JSON)).correct, words
        assert not benchmark.judge(task, cw.Attempt(task, say("I do not know."), JSON)).correct


@pytest.mark.parametrize(
    ("gold", "answer", "right"),
    [
        ("20 June 1837", "He died on June 20, 1837.", True),
        ("April 30, 1789", "It was the 30th of April, 1789", True),
        ("May 9, 2005", "2005-05-09", True),
        ("20 June 1837", "June 1837", False),
        ("20 June 1837", "June 21, 1837", False),
        ("Toghon Temür", "toghon temur", True),
        ("The Beatles", "beatles", True),
        ("847", "1,847 people", False),
        ("1847", "1,847 people", True),
        ("10.8", "10.8 grams", True),
        ("10.8", "110.8 grams", False),
        ("May 5, 1961", "on May 5,1961.", True),
        ("1950", "in 1950,1951 and 1952", True),
        ("1234567", "1,234,567", True),
        ("Mercia", "Mercians", False),
        ("Claude Sr.", "Claude Sr", True),
        ("Mercia", "", False),
        ("...", "Mercia", False),
    ],
)
def test_the_shipped_rule(gold: str, answer: str, right: bool) -> None:
    assert Contains().same("?", gold, answer) is right


def test_the_rule_is_linear(minute_of_work: Any) -> None:
    with minute_of_work():
        for text in ("1 june " * 100_000, "1," * 300_000, "." * 500_000, "a " * 300_000):
            Contains().same("?", "20 June 1837", text)
            normalised(text)


# Judges and searches --------------------------------------------------------------------------------------------------


class Teaching:
    """A teacher that says what it is told to."""

    name = "teaching"

    def __init__(self, reply: Any) -> None:
        self.reply, self.asked = reply, list[TeacherRequest]()

    def settings(self, role: str) -> dict[str, Any]:
        return {"model": "gpt-4o"}

    def ask(self, requests: Any) -> list[Any]:
        self.asked += requests
        return [self.reply for _ in requests]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('{"thought": "Equal.", "judgment": "Yes"}', True),
        ('Well: {"judgment": "No"}', False),
        ("- Thought: Equal.\n- Judgment: Yes", True),
        ("- Judgment: No.", False),
        ("Judgment: Yes, or rather no", None),
        ('{"judgment": "Perhaps"}', None),
        ("{" * 1000 + "}" * 1000, None),
        ("", None),
    ],
)
def test_what_a_judge_says(folder: Path, text: str, verdict: bool | None) -> None:
    assert read_judgment(text) is verdict
    teacher: Any = Teaching(TeacherReply(text))
    found = judged(Bamboogle(folder, judge=Asked(teacher)), [say("Mercia")])
    assert (None if found.masked else found.correct) is verdict
    shown_to_it = teacher.asked[0].messages[-1].text
    assert json.loads(shown_to_it)["question"] == ROWS[1]["Question"]


def test_a_judge_that_is_lost_masks_and_none_is_asked_without_an_answer(folder: Path) -> None:
    lost: Any = Teaching(TeacherFailure("no route"))
    benchmark = Bamboogle(folder, judge=Asked(lost))
    assert "no route" in str(judged(benchmark, [say("Mercia")]).masked)
    assert judged(benchmark, [search("a")]).error == "no_answer"
    assert len(lost.asked) == 1
    cut: Any = Teaching(TeacherReply('{"judgment": "Yes"}', finish="length"))
    assert judged(Bamboogle(folder, judge=Asked(cut)), [say("Mercia")]).masked


def test_results_of_serper_are_numbered_titles() -> None:
    organic = [{"title": f"T{number}", "snippet": f"S{number}"} for number in range(9)]
    text = shown({"answerBox": {"title": "Box", "answer": "42"}, "organic": [{"title": "no snippet"}, *organic]})
    assert text.splitlines()[:4] == ["1. Box", "- Answer: 42", "2. T0", "- Snippet: S0"]
    assert text.count("\n") == 2 * SHOWN - 1
    assert shown({"organic": None, "answerBox": "x"}) == ""


@pytest.fixture
def server() -> Iterator[tuple[str, list[Any]]]:
    asked: list[Any] = []

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append((self.headers["X-API-KEY"], body))
            good = body["q"] == "Godiva"
            reply = json.dumps({"organic": [{"title": "Godiva", "snippet": "Mercia"}]}).encode() if good else b"no"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: Any) -> None:
            pass

    made = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{made.server_port}/search", asked
    made.shutdown()
    made.server_close()
    thread.join()


def test_serper_is_asked_with_its_key(server: tuple[str, list[Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERPER_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set the environment variable SERPER_API_KEY"):
        Serper()
    monkeypatch.setenv("MY_KEY", "secret")
    found = made_search("serper", url=server[0], key_env="MY_KEY")
    assert found.find("Godiva") == "1. Godiva\n- Snippet: Mercia"
    assert server[1] == [("secret", {"q": "Godiva", "num": 15})]
    with pytest.raises(InfrastructureFailure, match="serper gave no answer"):
        found.find("else")


def test_searches_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    path.write_text('{"query": "Lady  Godiva", "result": "Mercia"}\n')
    found = made_search("recorded", file=path)
    assert found.find("lady godiva ") == "Mercia"
    with pytest.raises(InfrastructureFailure, match="nobody recorded"):
        found.find("Oslo")
    path.write_text('{"query": 3}\n')
    with pytest.raises(DataError, match=r"found\.jsonl:1: a recorded search"):
        Recorded(path)
    with pytest.raises(InfrastructureFailure, match="no search is set"):
        made_search(None).find("x")
    for name, said in (
        ("google", "'serper', 'recorded' or"),
        ("recorded", "search_file"),
        ("json:nobody", "cannot be"),
    ):
        with pytest.raises(UsageError, match=said):
            made_search(name)
    with pytest.raises(UsageError, match="it needs a name and a method find"):
        made_search("builtins:dict")


# The whole of it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [2, 4])
def test_an_episode_searches_reads_and_answers_within_four_rounds(folder: Path, rounds: int) -> None:
    """The stand-in searches, reads what was found, and answers with a word of it, if a round is left."""
    library = Library()
    benchmark = Bamboogle(folder, search=library)
    task = benchmark.corpus.task("bamboogle-1")
    talk = Conversation(task, JSON, build_messages(task, JSON), cw.Conditions(limits=limits_of(benchmark.corpus)))
    while not talk.over:
        results = [one.text for one in talk.messages if one.role == "tool"]
        wants = len(results) < rounds
        last = "" if wants else results[-1].partition("Earl of ")[2].split('"')[0]
        talk.accept(cw.Completion(search(f"query {len(results)}") if wants else say(last)))
    assert library.queries == [f"query {number}" for number in range(rounds)]
    found = benchmark.judge(task, talk.attempt)
    assert (found.correct, found.error) == ((True, "") if rounds < 4 else (False, "no_answer"))
    assert found.parts["calls"] == rounds
    assert talk.attempt.stop == ("answered" if rounds < 4 else "assistant_turns")


def test_judge_reads_released_records_and_prints_the_mean_of_calls(folder: Path, tmp_path: Path) -> None:
    app = App(registry=cw.default_registry())
    rows = [
        {"id": "bamboogle-0", "completion": [search("king"), search("his death"), say("June 20, 1837")]},
        {"id": "bamboogle-1", "predicted": "Mercia", "history": [{"role": "user"}, {"role": "obs"}], "score": 0},
        {"id": "bamboogle-1", "predicted": "Round Limit Exceeded, no answer is derived.", "history": []},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["benchmark", "judge", "bamboogle", str(tmp_path / "a.jsonl"), "--data", str(folder)]
    words += ["-o", str(tmp_path / "o.jsonl")]
    values = json.loads(CliRunner().invoke(cli, [*words, "--json"], obj=app, catch_exceptions=False).stdout)["values"]
    assert values == {"overall": 0.75, "calls": 1.25}  # each question once, by the mean of its two answers
    assert "1.25" in CliRunner().invoke(cli, [*words, "--overwrite"], obj=app, catch_exceptions=False).stdout
    words = ["evaluate", "--benchmark", "bamboogle", "--data", str(folder), "--sampler", "gold", "--json"]
    found = json.loads(CliRunner().invoke(cli, words, obj=app, catch_exceptions=False).stdout)
    assert found["values"] == {"overall": 1.0, "calls": 0.0}


def test_a_search_that_is_lost_masks_the_attempt(folder: Path) -> None:
    from callwright.measuring.benchmark import verdict_by

    benchmark = Bamboogle(folder, search=Library())
    task = benchmark.corpus.task("bamboogle-1")
    verdict, judgement = verdict_by(benchmark, cw.Attempt(task, [search("broken"), say("Mercia")], JSON))
    assert verdict.masked
    assert "closed" in str(judgement.masked)


def test_tables_and_what_is_not_official(folder: Path) -> None:
    benchmark = Bamboogle(folder)
    lost = Judged("bamboogle-0", "questions", Judgement(False, 0.0, masked="gone"))
    right = Judged("bamboogle-1", "questions", judged(benchmark, [search("a"), say("Mercia")]))
    assert benchmark.aggregate([lost, right]) == {"overall": 1.0, "calls": 1.0}
    assert benchmark.unofficial == (
        "the file holds 2 of 125 questions",
        "searches are answered by nobody in place of Serper",
        "answers are judged by contains in place of the release's judge, GPT-4o",
    )
    with pytest.raises(UsageError, match="judge_model"):
        Bamboogle(folder, judge="openai")


def test_files_are_read_packed_too(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no data\.json"):
        Bamboogle(tmp_path)
    (tmp_path / "data.json.gz").write_bytes(gzip.compress(json.dumps(ROWS).encode()))
    assert len(Bamboogle(tmp_path).tasks()) == 2
    (tmp_path / "data.json").write_text('[{"Question": "?"}]')
    with pytest.raises(DataError, match="question 0 has no 'Question' with its 'Answer'"):
        Bamboogle(tmp_path)
