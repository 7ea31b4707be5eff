"""T-Eval: every evaluator beside the official one's figures, what the release is read from, and the whole way."""

from __future__ import annotations

import json
import pickle
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError, MissingExtra, UnknownName, UsageError
from callwright.language.messages import Message
from callwright.measuring.benchmark import Judged, Judgement, attempt_of
from callwright.plugins import load_plugins
from callwright.walk.prompt import build_messages
from callwright_plugins.teval.benchmark import TEval
from callwright_plugins.teval.embedders import SentenceTransformers, Trigrams
from callwright_plugins.teval.files import FILES
from callwright_plugins.teval.instruct import read_words
from callwright_plugins.teval.literals import Unreadable, read_data
from callwright_plugins.teval.planning import Action, score_plan
from callwright_plugins.teval.trimming import trimmed

pytest.importorskip("networkx", reason="plans are matched by networkx")

#: Hand-made entries and answers, with what the official evaluators said of each (benchmarks/teval_agreement.py), or the
#: name of the exception with which they ended.
CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "cases.json").read_text("utf-8"))
PARSER = cw.parser("json")
Minute = Callable[[], AbstractContextManager[None]]


def write(folder: Path, version: str, entries: dict[str, dict[str, Any]]) -> Path:
    folder.mkdir(exist_ok=True)
    for stem, some in entries.items():
        (folder / f"{stem}_{version.replace('-', '_')}.json").write_text(json.dumps(some))
    return folder


@pytest.fixture(scope="module")
def entries() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {stem: {} for stem in FILES}
    for case in CASES:
        found[case["file"]][case["key"]] = case["entry"]
    return found


@pytest.fixture(scope="module")
def folder(entries: dict[str, dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("teval") / "data", "v2", entries)


@pytest.fixture(scope="module")
def benchmark(folder: Path) -> TEval:
    return TEval(folder, embedder="trigrams")


def figures(benchmark: TEval, task_id: str, prediction: Any) -> tuple[Judgement, dict[str, float]]:
    attempt = benchmark.answer({"id": task_id, "prediction": prediction}, PARSER)
    assert attempt is not None
    judgement = benchmark.judge(attempt.task, attempt)
    one = Judged(task_id, benchmark.category_of(attempt.task), judgement)
    return judgement, {
        key: found for key, found in benchmark.aggregate([one]).items() if " " in key and found is not None
    }


@pytest.mark.parametrize("case", CASES, ids=[case["about"] for case in CASES])
def test_a_figure_is_the_official_one(case: dict[str, Any], benchmark: TEval) -> None:
    judgement, found = figures(benchmark, f"{case['file']}/{case['key']}", case["prediction"])
    if isinstance(case["official"], str):  # which ends with an exception, and tells nothing: nothing is right
        assert (judgement.correct, judgement.score) == (False, 0.0)
    else:
        assert found == pytest.approx(case["official"], abs=1e-12)


def test_the_quirks_of_the_official_code_are_among_the_cases() -> None:
    known = {case["about"]: case["official"] for case in CASES}
    one = known["plan: one nonsense action counts as one in order"]
    assert one["plan_json f1"] == pytest.approx(0.5)  # 1 of 1, and 1 of 3
    twice = known["a reference that repeats itself: the reference"]["plan_json f1"]
    assert twice < 1
    perfect = known["a step: the reference"]["reason_retrieve_understand_json args"]
    assert perfect == pytest.approx(2 / (2 + 1e-5), abs=1e-12)
    assert known["instruct in JSON: an empty argument may be missing"]["instruct_json args_em"] == 1
    assert known["a template with a group: the groups are one off"]["instruct_str args_em"] < 1


def test_gold_of_the_given_reviews_is_right(official_data: Path) -> None:
    made = TEval(official_data / "teval", "v1", "trigrams")
    tasks = made.tasks("review_str")
    judged = []
    for task in tasks:
        attempt = cw.Attempt(task, f"Answer: {made.corpus.entries[task.id].gold['answer']}", PARSER)
        judged.append(Judged(task.id, "review_str", made.judge(task, attempt)))
    assert sum(one.judgement.correct for one in judged) == len(tasks) == 189
    table = made.aggregate(judged)
    assert (table["review"], table["plan"], table["overall"]) == (1.0, None, None)


def test_prompts_are_the_release_s(official_data: Path) -> None:
    made = TEval(official_data / "teval", embedder="trigrams")
    assert made.version == "v1"
    task = made.tasks("plan_str")[0]
    for native in (False, True):
        messages = build_messages(task, PARSER, native=native)
        assert [message.role for message in messages] == ["system", "user"]
        assert messages[0].text.startswith("\nYou have access to the following API:")
        assert messages[-1].text == task.query
    assert made.unofficial[0] == Trigrams.unofficial
    assert any("plan_json holds 205 of the release's 553 entries" in reason for reason in made.unofficial)
    assert any("the folder has no instruct" in reason for reason in made.unofficial)


# The table ------------------------------------------------------------------------------------------------------------


def test_the_table_is_added_up_as_the_official_one(benchmark: TEval) -> None:
    shares = {
        "instruct_json": {"format": 1.0, "args_em": 0.5},
        "instruct_str": {"format": 0.5, "args_em": 0.0},
        "plan_json": {"precision": 0.1, "recall": 0.2, "f1": 0.3, "parse_rate": 1.0},
        "plan_str": {"precision": 0.1, "recall": 0.2, "f1": 0.5, "parse_rate": 1.0},
        "reason_str": {"thought": 0.2, "parse_rate": 1.0},
        "retrieve_str": {"name": 0.0, "parse_rate": 1.0},
        "understand_str": {"args": 1.0, "parse_rate": 1.0},
        "reason_retrieve_understand_json": {"thought": 0.4, "name": 1.0, "args": 0.5, "parse_rate": 1.0},
        "review_str": {"review_quality": 1 / 3, "parse_rate": 1.0},
    }
    judged = [Judged(category, category, Judgement(False, 0.0, parts=parts)) for category, parts in shares.items()]
    found = benchmark.aggregate(judged)
    expected = {
        "instruct": (0.75 + 0.25) / 2,
        "plan": 0.4,
        "reason": 0.3,
        "retrieve": 0.5,
        "understand": 0.75,
        "review": 0.3333,  # the official program rounds it to four digits
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert found["overall"] == pytest.approx(sum(expected.values()) / 6, abs=1e-12)
    assert found["plan_json f1"] == 0.3
    part = benchmark.aggregate(judged[1:])
    assert (part["instruct"], part["overall"], part["plan"]) == (None, None, found["plan"])
    assert benchmark.aggregate(judged[::-1]) == found


def test_samples_of_a_task_count_as_one(benchmark: TEval) -> None:
    right, wrong = ({"review_quality": value, "parse_rate": 1.0} for value in (1.0, 0.0))
    judged = [Judged("a", "review_str", Judgement(True, 1.0, parts=right), sample) for sample in range(3)]
    judged += [Judged("a", "review_str", Judgement(False, 0.0, parts=wrong), 3)]
    judged += [Judged("b", "review_str", Judgement(False, 0.0, parts=wrong))]
    judged += [Judged("c", "review_str", Judgement(False, 0.0, masked="gone"))]
    assert benchmark.aggregate(judged)["review_str review_quality"] == 0.375


# What is judged -------------------------------------------------------------------------------------------------------


def test_what_is_sampled_here_is_trimmed_and_what_was_made_elsewhere_is_not(benchmark: TEval) -> None:
    case = next(one for one in CASES if one["about"] == "arguments: the reference")
    task = benchmark.corpus.task(f"understand_str/{case['key']}")
    written = f"<think>hm: so</think>\n```json\n{case['prediction']}\n```\nuser: and now?"
    for text, right in ((case["prediction"], True), (written, False)):
        attempt = cw.Attempt(task, text, PARSER)
        assert benchmark.judge(task, attempt).correct is right
        attempt.stop = "unparsed"  # as one that was sampled here has
        assert benchmark.judge(task, attempt).correct
    assert trimmed(" ```json\n{}``` <|im_end|>```") == "{}"
    assert trimmed("a[INST]b") == "a"


def test_messages_are_judged_as_they_stand(benchmark: TEval) -> None:
    case = next(one for one in CASES if one["about"] == "review C: the letter")
    task = benchmark.corpus.task(f"review_str/{case['key']}")
    said = {"role": "assistant", "content": case["prediction"], "reasoning_content": "A: or B"}
    found = attempt_of({"messages": [{"role": "user", "content": task.query}, said]}, task, PARSER)
    assert found is not None
    assert benchmark.judge(task, found[1]).correct


def test_an_official_folder_is_judged_whole(
    entries: dict[str, dict[str, Any]], folder: Path, benchmark: TEval, tmp_path: Path
) -> None:
    answers = tmp_path / "answers"
    (answers / "plan_json_gpt").mkdir(parents=True)
    by_file: dict[str, dict[str, Any]] = {}
    for case in CASES:
        by_file.setdefault(case["file"], {})[case["key"]] = {**case["entry"], "prediction": case["prediction"]}
    for stem, some in by_file.items():
        if stem == "plan_json":  # one file an entry, as they are handed in
            for key, one in some.items():
                (answers / "plan_json_gpt" / f"{key}.json").write_text(json.dumps(one))
        else:
            (answers / f"{stem}_gpt.json").write_text(json.dumps(some))
    (answers / "gpt_-1.json").write_text("{}")  # the official program's own table
    words = ("benchmark", "judge", "t-eval:v2", answers, "--data", folder, "--benchmark-option", "embedder=trigrams")
    result = invoke(*words, "-o", tmp_path / "out.jsonl", "--json")
    assert result.exit_code == 0, result.output
    table = json.loads(result.stdout)
    assert table["answers"] == len(CASES)
    assert table["benchmark"]["why"] == [Trigrams.unofficial]
    judged = []
    for case in CASES:
        judgement, _ = figures(benchmark, f"{case['file']}/{case['key']}", case["prediction"])
        task = benchmark.corpus.task(f"{case['file']}/{case['key']}")
        judged.append(Judged(task.id, benchmark.category_of(task), judgement))
    assert table["values"] == pytest.approx(dict(benchmark.aggregate(judged)), abs=1e-12)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sum(row["valid"] for row in rows) == sum(one.judgement.correct for one in judged)
    one = invoke(*words[:3], answers / "review_str_gpt.json", *words[4:], "-o", tmp_path / "one.jsonl", "--json")
    assert json.loads(one.stdout)["values"]["review"] == table["values"]["review"]
    inner = invoke(*words[:3], answers / "plan_json_gpt", *words[4:], "-o", tmp_path / "two.jsonl", "--json")
    assert json.loads(inner.stdout)["values"]["plan_json f1"] == table["values"]["plan_json f1"]


def test_files_that_hold_no_answers_are_refused(folder: Path, tmp_path: Path) -> None:
    words = ("benchmark", "judge", "t-eval", "--data", folder, "-o", tmp_path / "out.jsonl")
    tasks = invoke(*words, folder / "review_str_v2.json")
    assert (tasks.exit_code, "has no 'prediction'" in tasks.stderr) == (2, True), tasks.stderr
    (tmp_path / "empty").mkdir()
    assert "has no answers of the official program" in invoke(*words, tmp_path / "empty").stderr
    (tmp_path / "review_str_x.json").write_text('{"query_other": {"prediction": "A"}}')
    assert "has no task 'review_str/query_other'" in invoke(*words, tmp_path / "review_str_x.json").stderr
    (tmp_path / "review_str_y.json").write_text('{"query_')
    assert "cannot be read" in invoke(*words, tmp_path / "review_str_y.json").stderr


def invoke(*words: str | Path, app: App | None = None) -> Result:
    app = app or App(registry=load_plugins())
    return CliRunner().invoke(root, [str(word) for word in words], obj=app, catch_exceptions=False)


class Knows:
    """A sampler that gives the reference of a review, behind a thought, and the prompt's own words to anything else."""

    name = "knows"

    def __init__(self, folder: str) -> None:
        self._entries = TEval(folder, embedder="trigrams").corpus.entries

    def sample(self, requests: Any, *, n: int = 1, seed: int = 0, temperature: float = 1.0) -> Any:
        return [[cw.Completion(self._said(one))] * n for one in requests]

    def _said(self, request: Any) -> str:
        assert request.messages == self._entries[request.task.id].prompt
        if request.task.id.startswith("review"):
            return f"<think>A: no</think>Answer: {self._entries[request.task.id].gold['answer']}<|im_end|>"
        return str(request.messages[-1].text)


def test_an_evaluation_asks_in_the_release_s_words_and_goes_on_after_a_stop(
    entries: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    some = {"review_str": dict(list(entries["review_str"].items())[:10]), "plan_str": entries["plan_str"]}
    data = write(tmp_path / "data", "v2-subset", some)
    plugin = SimpleNamespace(
        callwright_samplers=cw.hookimpl(lambda: [cw.Lazy("knows", Knows, options={"folder": str(data)})])
    )
    app = App(registry=load_plugins(extra={"knows": plugin}))
    words = ("evaluate", "--benchmark", "t-eval", "--data", data, "--corpus-option", "embedder=trigrams")
    words = (*words, "--sampler", "knows", "--by", "dimension", "-o", tmp_path / "e", "--json")
    found = json.loads(invoke(*words, app=app).stdout)
    assert found["benchmark"]["version"] == "v2-subset"
    assert found["values"]["review"] == 1.0
    assert found["values"]["plan"] < 1
    kept = (tmp_path / "e/verdicts.jsonl").read_bytes()
    (tmp_path / "e/verdicts.jsonl").write_bytes(b"".join(kept.splitlines(keepends=True)[:7]))
    (tmp_path / "e/verdicts.jsonl.sha256").unlink()
    assert json.loads(invoke(*words, app=app).stdout)["values"] == found["values"]
    assert (tmp_path / "e/verdicts.jsonl").read_bytes() == kept
    again = ("benchmark", "judge", "t-eval", tmp_path / "e/verdicts.jsonl", "--data", data)
    again = (*again, "--benchmark-option", "embedder=trigrams", "-o", tmp_path / "o.jsonl", "--json")
    assert json.loads(invoke(*again).stdout)["values"] == found["values"]


# What is read ---------------------------------------------------------------------------------------------------------


def test_versions_are_found_by_the_names_of_files(entries: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    one = {"review_str": entries["review_str"]}
    write(tmp_path / "a", "v1", one)
    assert TEval(tmp_path / "a").version == "v1"
    write(tmp_path / "a", "v2-subset", one)
    assert TEval(tmp_path / "a").version == "v2-subset"
    assert TEval(tmp_path / "a", "v1").version == "v1"
    assert len(TEval(tmp_path / "a").unofficial) == 1  # files are missing; reviews need no embedder
    with pytest.raises(DataError, match=r"has none of T-Eval's files of v2 .* it has files of v2-subset and v1"):
        TEval(tmp_path / "a", "v2")
    with pytest.raises(UsageError, match="t-eval has no version 'v3'"):
        TEval(tmp_path / "a", "v3")
    with pytest.raises(DataError, match="name their folder with --data DIR"):
        TEval(tmp_path)
    shutil.move(tmp_path / "a/review_str_v1.json", tmp_path / "review_str_v1.json")
    assert list(TEval(tmp_path).categories) == ["review_str"]


@pytest.mark.parametrize(
    ("stem", "change", "told"),
    [
        ("review_str", {"origin_prompt": []}, "'origin_prompt' is no list of messages"),
        ("review_str", {"origin_prompt": [{"role": "king"}]}, "'origin_prompt': 'role' is 'king'"),
        ("review_str", {"ground_truth": "A"}, "'ground_truth' has no 'answer'"),
        ("plan_json", {"meta": {"prompt_type": "ReWOO"}}, "neither json nor str"),
        ("plan_str", {"meta": {"prompt_type": "str"}}, "no 'API_list'"),
        ("instruct", {"template": {"thought": "a"}}, "'template' has not all of thought, action, args"),
        ("instruct", {"ground_truth": {"action": "a"}}, "no 'action' with an object 'args'"),
    ],
)
def test_an_entry_that_is_none_is_named(
    stem: str, change: dict[str, Any], told: str, entries: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    key, entry = next(iter(entries[stem].items()))
    write(tmp_path / "d", "v2", {stem: {key: {**entry, **change}}})
    with pytest.raises(DataError, match=rf"{stem}_v2\.json: {key}: .*{told}"):
        TEval(tmp_path / "d")


def test_what_a_function_said_is_a_message_of_the_user(entries: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    key, entry = next(iter(entries["review_str"].items()))
    prompt = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "function", "content": "c"},
    ]
    write(tmp_path / "d", "v2", {"review_str": {key: {**entry, "origin_prompt": prompt}}})
    (task,) = TEval(tmp_path / "d").tasks()
    assert build_messages(task, PARSER) == (Message.user("a"), Message.assistant("b"), Message.user("c"))


def test_a_copy_elsewhere_judges_alike(benchmark: TEval) -> None:
    copy = pickle.loads(pickle.dumps(benchmark))
    task = pickle.loads(pickle.dumps(benchmark.tasks("plan_str")[0]))
    attempt = cw.Attempt(task, "Use weather.today", PARSER)
    assert copy.judge(task, attempt) == benchmark.judge(task, attempt)


# Embedders ------------------------------------------------------------------------------------------------------------


def test_the_official_embedder_is_asked_as_the_official_program_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = pytest.importorskip("numpy")
    asked = []

    class Vectors(list):  # type: ignore[type-arg]
        pass

    class Model:
        def __init__(self, name: str) -> None:
            if name == "missing":
                raise OSError("no such model")
            asked.append(name)

        def encode(self, texts: list[str], *, convert_to_tensor: bool) -> Vectors:
            assert convert_to_tensor
            asked.append(tuple(texts))
            return Vectors(texts)

    def cos_sim(left: Vectors, right: Vectors) -> Any:
        values = numpy.array([[float(one == other) for other in right] for one in left], dtype="float32")
        return SimpleNamespace(cpu=lambda: SimpleNamespace(numpy=lambda: values))

    module = SimpleNamespace(SentenceTransformer=Model, util=SimpleNamespace(cos_sim=cos_sim))
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    made = SentenceTransformers()
    plan = [Action(0, "a", "x"), Action(1, "b", "y")]
    assert asked == []  # nothing is loaded before it is needed
    assert score_plan(plan, plan, made).f1 == 1.0
    assert asked == ["all-mpnet-base-v2", ("a", "b"), ("a", "b"), ("x", "y"), ("x", "y")]
    assert (made.unofficial, SentenceTransformers("/models/all-mpnet-base-v2/").unofficial) == ("", "")
    assert "in place of all-mpnet-base-v2" in SentenceTransformers("gte-large").unofficial
    with pytest.raises(DataError, match="embedder_model=DIR"):
        SentenceTransformers("missing").similarity(["a"], ["b"])


def test_without_the_package_the_error_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    made = TEval(folder)
    review, plan = made.tasks("review_str")[0], made.tasks("plan_str")[0]
    assert made.judge(review, cw.Attempt(review, "Answer: A", PARSER)).correct
    with pytest.raises(MissingExtra, match=r"pip install 'callwright\[teval\]'"):
        made.judge(plan, cw.Attempt(plan, "Use weather.today", PARSER))


def test_an_embedder_is_a_name_or_an_object(folder: Path) -> None:
    class Same:
        name, unofficial = "same", "everything is alike"

        def similarity(self, left: Any, right: Any) -> Any:
            return [[1.0] * len(right)] * len(left)

    made = TEval(folder, embedder=Same())
    task = made.tasks("reason_str")[0]
    assert made.judge(task, cw.Attempt(task, "whatever", PARSER)).correct
    assert made.unofficial == ["everything is alike"]
    with pytest.raises(UnknownName, match="trigrams"):
        TEval(folder, embedder="trigram")
    with pytest.raises(UsageError, match="'embedder_model' goes with embedder=sentence-transformers"):
        TEval(folder, embedder="trigrams", embedder_model="x")
    with pytest.raises(UsageError, match="'embedder' is a name or has"):
        TEval(folder, embedder=3)  # type: ignore[arg-type]


def test_trigrams_are_cosines() -> None:
    texts = ["", "a", "weather", "weather ", "mail.send", "weather.today"]
    found = Trigrams().similarity(texts, texts)
    for one, row in enumerate(found):
        for other, value in enumerate(row):
            assert 0 <= value <= 1
            assert value == pytest.approx(found[other][one], abs=1e-15)
        assert row[one] == (1.0 if texts[one] else 0.0)
    assert found[2][5] > found[2][4]


# Whatever a model writes ----------------------------------------------------------------------------------------------


def test_nothing_that_a_model_writes_hangs_or_raises(benchmark: TEval, minute_of_work: Any) -> None:
    many = json.dumps([{"id": at, "name": f"weather.today{at % 7}", "args": {"city": "Oslo"}} for at in range(2000)])
    texts = [
        "[" * 50_000,
        "{" * 50_000,
        "-" * 100_000 + "1",
        '{"args":' * 20_000,
        "goal: " * 20_000 + "\n\nname: " * 20_000,
        "goal: \n\nname: \n\nargs: " * 10_000,
        "\\" * 50_000,
        "\ud800",
        "weather.today. " * 3_000,
        "a." * 50_000,
        many,
    ]
    with minute_of_work():
        for category in benchmark.categories:
            task = benchmark.tasks(category)[0]
            for text in texts:
                judgement = benchmark.judge(task, cw.Attempt(task, text, PARSER))
                assert 0 <= judgement.score <= 1
        template = {"thought_end": "b", "action_start": "", "action_end": "c", "args_start": "", "args_end": "d"}
        for first in ("a", "[a]"):
            assert read_words("abc" * 30_000, {**template, "thought_start": first}) is None


def test_nothing_of_a_text_is_run() -> None:
    for text in ("__import__('os')", "f'{1}'", "[x for x in ()]", "(lambda: 1)()", "1 + 1"):
        with pytest.raises(Unreadable):
            read_data(text)
