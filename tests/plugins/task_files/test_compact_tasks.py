"""The corpus ``compact-tasks`` and the recipe that trains on it, on tasks synthesised in the village."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import callwright as cw
from callwright.cli.root import root
from callwright.commands.app import App
from callwright.errors import DataError, UnknownName, UsageError
from callwright.language.native import turn_text
from callwright.pipeline import build_pipeline
from callwright.recipe_file import load_recipe
from callwright.testing import check_component
from callwright.training.demonstrations import Demonstrates

SYNTHESIS = """
name = "few"

[synthesis]
environments = ["village-bakery+village-purse"]
count = 30

[synthesis.synthesizer]
name = "grounded"
calls = 700
longest = 2
distractors = 0.0
stripped = 0.0
missing = 0.5
minimal = 0.0
"""
HELD = 5


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations that passed the gates; the last ones are held out."""
    folder = tmp_path_factory.mktemp("compact")
    (folder / "few.toml").write_text(SYNTHESIS, encoding="utf-8")
    command = ["synthesize", str(folder / "few.toml"), "-o", str(folder / "few")]
    result = CliRunner().invoke(root, command, obj=App(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    head, *rows = (folder / "few" / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    held = [json.dumps({**json.loads(row), "split": "evaluation"}) for row in rows[-HELD:]]
    path = folder / "tasks.jsonl"
    path.write_text("\n".join([head, *rows[:-HELD], *held]) + "\n", encoding="utf-8")
    return path


def made(file: Path, **options: Any) -> Any:
    return cw.corpus("compact-tasks", file=str(file), **options)


def test_it_conforms(file: Path, tmp_path: Path) -> None:
    """Where no tool appears later: in one turn such a task cannot be done."""
    head, *rows = file.read_text(encoding="utf-8").splitlines()
    at_once = tmp_path / "at-once.jsonl"
    at_once.write_text(
        "\n".join([head, *(row for row in rows if "appear" not in json.loads(row))]) + "\n", encoding="utf-8"
    )
    check_component("corpus", made(at_once), again=made(at_once))


def test_it_goes_into_other_processes(file: Path) -> None:
    corpus = made(file)
    assert isinstance(corpus, Demonstrates)
    again = pickle.loads(pickle.dumps(corpus))
    assert again.vocabulary() == corpus.vocabulary()
    assert again.splits == corpus.splits == cw.corpus("tasks", file=str(file)).splits


def test_a_prompt_is_the_offered_tools_and_the_query(file: Path) -> None:
    corpus = made(file)
    for task in corpus["train"]:
        offered, _, rest = corpus.prompt_text(task).partition("\n")
        assert offered.split() == sorted(task.offered)
        assert rest == f"{task.query}\n"
        appearing = [name for name, turn in task.appear.items() if turn > 0]
        assert not set(appearing) & set(offered.split())


def test_a_policy_that_says_the_demonstration_hears_it_and_reaches_the_goal(file: Path) -> None:
    """Results and users stand in demonstrations as episodes write them."""
    corpus, parser = made(file), cw.parser("hermes")
    asked = 0
    for task, shown in corpus.demonstrations(0, 100):
        texts = [turn_text(message, parser) for message in shown if message.role == "assistant"]
        conversation = _talk(task, parser, texts)
        assert [message.text for message in conversation.messages[1 : 1 + len(shown)]] == [
            turn_text(message, parser) if message.role == "assistant" else message.text for message in shown
        ]
        asked += any(message.role == "user" for message in shown)
        if task.facts["kind"] == "task":
            assert cw.reward("prove").score_attempt(conversation.attempt).total > 0.9, task.id
    assert asked > 3


def _talk(task: cw.Task, parser: Any, texts: list[str]) -> Any:
    from callwright.episodes import Conversation

    conditions = cw.Conditions(limits=cw.TurnLimits(assistant_turns=60, user_turns=60))
    conversation = Conversation(task, parser, [cw.Message.user(task.query)], conditions)
    for text in texts:
        conversation.hear(conversation.take(cw.Completion(text)))
    return conversation


def test_demonstrations_are_drawn_from_the_train_side_alone(file: Path) -> None:
    corpus = made(file)
    train = {task.id for task in corpus["train"]}
    drawn = [task.id for task, _ in corpus.demonstrations(1, 10)]
    assert len(set(drawn)) == 10
    assert set(drawn) <= train
    assert drawn == [task.id for task, _ in corpus.demonstrations(1, 10)]
    assert drawn != [task.id for task, _ in corpus.demonstrations(2, 10)]
    assert len(list(corpus.demonstrations(1, 10_000))) == len(train)


def test_somebody_in_a_hurry_stops_where_a_call_follows_upon_a_result_until_the_user_gives_up(file: Path) -> None:
    corpus = made(file)
    whole = {task.id: shown for task, shown in corpus.demonstrations(0, 100)}
    hurried = {task.id: shown for task, shown in corpus.demonstrations(0, 100, {"stops": 1.0})}
    assert whole.keys() == hurried.keys()
    stopped = 0
    for name, shown in hurried.items():
        if list(shown) == list(whole[name]):
            continue
        stopped += 1
        start = next(place for place, one in enumerate(shown) if one != whole[name][place])
        assert shown[start - 1].role == "tool"
        assert "<tool_call>" in whole[name][start].text
        said = [(one.role, one.text) for one in shown[start:]]
        again = [("user", "That is not done yet."), ("assistant", "That is done.")]
        insisted = (len(said) - 1) // 2  # three times; none where the user goes on to the next request instead
        assert insisted in (0, 3)
        assert said == [("assistant", "That is done."), *again * insisted]
    assert 3 < stopped < len(whole)


def test_whoever_stops_now_and_then_goes_on_when_the_user_insists_and_reaches_the_goal(file: Path) -> None:
    corpus, parser = made(file), cw.parser("hermes")
    gone_on = 0
    for task, shown in (one for seed in range(5) for one in corpus.demonstrations(seed, 100, {"stops": 0.3})):
        insisted = [place for place, one in enumerate(shown) if one.text == "That is not done yet."]
        if insisted and "<tool_call>" in shown[insisted[-1] + 1].text and task.facts["kind"] == "task":
            texts = [turn_text(one, parser) for one in shown if one.role == "assistant"]
            assert cw.reward("prove").score_attempt(_talk(task, parser, texts).attempt).total > 0.9, task.id
            gone_on += 1
    assert gone_on > 0


def test_whoever_guesses_asks_for_nothing_and_calls_with_another_value(file: Path) -> None:
    corpus, parser = made(file), cw.parser("hermes")
    whole = {task.id: shown for task, shown in corpus.demonstrations(0, 100)}
    guesses = 0
    for task, shown in corpus.demonstrations(0, 100, {"guesses": 1.0}):
        if list(shown) == list(whole[task.id]):
            continue
        guesses += 1
        held = task.facts["stages"][0]["withheld"][0]
        assert "?" in whole[task.id][0].text
        assert {one.role for one in shown} == {"assistant", "tool"}
        assert shown[-1].text == "That is done."
        texts = [turn_text(one, parser) for one in shown if one.role == "assistant"]
        assert parser.parse(texts[-2]).calls[-1].arguments[held["argument"]] != held["value"]
    assert guesses > 3


def test_values_are_the_same_piece_where_they_are_said_and_where_they_are_called(file: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="tokenizers need the extra 'train'")
    assert transformers is not None
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    corpus, parser = made(file), cw.parser("hermes")
    tokenizer = build_tokenizer(corpus.vocabulary())

    def cut(text: str) -> list[str]:
        return [tokenizer.decode([one]) for one in tokenizer.encode(text)]

    seen = 0
    for task, shown in corpus.demonstrations(0, 100):
        calls = [turn_text(one, parser) for one in shown if one.role == "assistant" and "{" in turn_text(one, parser)]
        for call in parser.parse("\n".join(calls)).calls if calls else ():
            text = parser.render(cw.Program((cw.Call(0, call.tool, call.arguments),)))
            assert call.tool in cut(text)
            assert len(cut(text)) <= 3 + 4 * len(call.arguments), cut(text)
            for value in call.arguments.values():
                if isinstance(value, int) and value < 100 and re.search(rf" {value}\b", task.query):
                    assert str(value) in cut(text)
                    assert str(value) in cut(task.query)
                    seen += 1
    assert seen > 5
    for text in ("\u00e9 # \n\n", '{"id":0,"name":"pay","result":{"balance":17}}'):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_shown_is_another_file_and_its_words_are_the_vocabulary(file: Path, tmp_path: Path) -> None:
    head, *rows = file.read_text(encoding="utf-8").splitlines()
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join([head, *rows[:3]]) + "\n", encoding="utf-8")
    corpus = made(file, shown=str(few))
    assert {task.id for task, _ in corpus.demonstrations(0, 9)} == {json.loads(row)["id"] for row in rows[:3]}
    assert set(corpus.vocabulary()) < set(made(file).vocabulary())


def test_mistakes_are_told(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'shown' must be str \| Path \| None, not 3"):
        made(file, shown=3)
    with pytest.raises(UsageError, match="'form': Input should be a valid string, not 3"):
        made(file, form=3)
    with pytest.raises(UsageError, match=r"the options 'stops' and 'guesses', not \['sloppy'\]"):
        made(file).demonstrations(0, 1, {"sloppy": 1})
    with pytest.raises(
        UsageError, match="'stops' of the demonstrations of compact-tasks is a share from 0 to 1, not 2"
    ):
        made(file).demonstrations(0, 1, {"stops": 2})
    head, *rows = file.read_text(encoding="utf-8").splitlines()
    held = tmp_path / "held.jsonl"
    held.write_text("\n".join([head, *rows[-HELD:]]) + "\n", encoding="utf-8")
    with pytest.raises(UnknownName, match="train"):
        made(file, shown=str(held))
    programs = tmp_path / "programs.jsonl"
    cw.write_tasks(programs, cw.corpus("toolworld-mini-v1")["train"][:2])
    with pytest.raises(DataError, match="no task with a reference turn by turn"):
        made(programs).vocabulary()


def test_the_recipe_builds_on_such_a_file_and_pays_by_prove(file: Path) -> None:
    loaded = load_recipe("synthesised-cpu", [f"corpus.file={file}", f"corpus.shown={file}"])
    pipeline = build_pipeline(loaded)
    assert pipeline.reward.name == "prove"
    assert pipeline.algorithm is not None
    assert pipeline.algorithm.name == "grpo"
    assert (pipeline.conditions.limits.assistant_turns, pipeline.conditions.limits.user_turns) == (6, 3)
    assert pipeline.messages(pipeline.tasks("train")[0])


def test_a_dry_run_says_what_it_would_do(file: Path, tmp_path: Path) -> None:
    command = ["run", "synthesised-cpu", "--dry-run", "--output", str(tmp_path / "run")]
    command += ["--set", f"corpus.file={file}", "--set", f"corpus.shown={file}"]
    result = CliRunner().invoke(root, command, obj=App(), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "compact-tasks" in result.output
    assert not (tmp_path / "run").exists()


def test_without_its_files_the_recipe_says_which(tmp_path: Path) -> None:
    missing = tmp_path / "gated.jsonl"
    with pytest.raises(cw.CallwrightError, match=r"gated\.jsonl"):
        build_pipeline(load_recipe("synthesised-cpu", [f"corpus.file={missing}"]))


@pytest.mark.slow
def test_it_trains_and_what_users_and_tools_say_carries_no_loss(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    small = ["trainer.steps=2", "trainer.warm_start.steps=40", "trainer.evaluation_tasks=1", "trainer.group=4"]
    cw.train(
        "synthesised-cpu", output=tmp_path / "run", overrides=[f"corpus.file={file}", f"corpus.shown={file}", *small]
    )
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 2
    assert all(row["environment_tokens"] >= 0 and row["tokens"] > 0 for row in rows)
