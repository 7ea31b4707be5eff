"""What of the verl bridge needs nothing of verl: rewards, parquet, configuration files, the command."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.environments.hazards.policy import Fault, Hazards, read_hazards
from callwright.environments.living.policy import read_policy
from callwright.errors import DataError, RecipeError, UnknownName
from callwright.pipeline import open_pipeline
from callwright.plugins import load_plugins
from callwright.walk.prompt import build_messages
from callwright_plugins import verl_bridge
from callwright_plugins.verl_bridge.parquet import rows
from callwright_plugins.verl_bridge.scoring import compute_score, compute_scores

ROOT = Path(__file__).resolve().parents[3]
CORPUS = cw.corpus("toolworld-mini-v1", train_size=24, evaluation_size=2)
TASKS = list(CORPUS["train"][:6])
FORM = cw.parser("json")
GOLD = [FORM.render(task.program) for task in TASKS if task.program is not None]
NAME = "toolworld-mini-v1"


class Down:
    """An environment whose server is down."""

    name, pure, tools = "down", True, CORPUS.environment.tools

    def open(self, scenario: str = "", seed: int = 0) -> Any:
        raise cw.InfrastructureFailure("the server is down")


@pytest.mark.parametrize("text", [*GOLD, "", "no", GOLD[3].replace("location", "place")])
@pytest.mark.parametrize("name", ["tier", "toolrl", "prove"])
def test_a_score_is_what_the_recipe_gives(name: str, text: str) -> None:
    function, recipe = verl_bridge.compute_score(name, corpus=CORPUS), cw.reward(name)
    for task in TASKS:
        reward = recipe.score(task, text)
        found = function(NAME, text, task.id, {})
        assert found["score"] == reward.total
        for term, weighted in reward.scores.items():
            assert found[f"{name}/{term}"] == weighted.score.value
        assert found[f"{name}/masked"] == 0.0
        assert list(found) == list(function(NAME, "x", TASKS[0].id, {})), "the keys are the same for every sample"


def test_the_module_function_reads_its_configuration_from_reward_kwargs() -> None:
    task = TASKS[3]
    by_source = compute_score(NAME, GOLD[3], task.id, None)
    assert by_source["score"] == 1.0
    assert compute_score("ours", GOLD[3], task.id, {}, recipe="tier", corpus=NAME, ir="json") == by_source
    assert compute_score("ours", GOLD[3], task.id, {}, recipe="tier-mini") == by_source
    assert compute_score(NAME, GOLD[3], None, {"task_id": task.id}) == by_source
    assert compute_score(NAME, GOLD[3], task.id, {}, recipe="simple")["score"] == 1.0
    assert compute_score(NAME, GOLD[3], task.id, {}, ir="xml")["score"] == 0.0
    assert compute_score(NAME, GOLD[3], task.id, {}, reward_router_address="x") == by_source


def test_a_thought_that_the_prompt_opened_belongs_to_the_text() -> None:
    """verl hands over the response alone; only who knows the template can say where it began."""
    task = cw.corpus(NAME).task("train-3")
    response = GOLD[3].removeprefix("<think>")
    assert response != GOLD[3]
    assert compute_score(NAME, response, task.id, {})["score"] == 0.0
    assert compute_score(NAME, response, task.id, {}, thought_opened=True)["score"] == 1.0
    assert verl_bridge.compute_score("tier", corpus=NAME, thought_opened=True)(NAME, response, task.id)["score"] == 1.0


def test_a_lost_sample_is_never_a_number_unless_asked() -> None:
    pipeline = evolve(open_pipeline("tier", CORPUS), environment=Down())
    with pytest.raises(cw.InfrastructureFailure, match=r"task 'train-3' cannot be scored: .*the server is down"):
        verl_bridge.compute_score(pipeline)(NAME, GOLD[3], "train-3")
    found = verl_bridge.compute_score(pipeline, masked_score=-1)(NAME, GOLD[3], "train-3")
    assert (found["score"], found["tier/masked"]) == (-1.0, 1.0)
    assert verl_bridge.compute_score(pipeline)(NAME, "no call", "train-3")["score"] == 0.0

    class Flaky:
        """Down at the first time only."""

        name, pure, tools = "flaky", True, CORPUS.environment.tools
        failed = False

        def open(self, scenario: str = "", seed: int = 0) -> Any:
            if not self.failed:
                self.failed = True
                raise cw.InfrastructureFailure("not yet")
            return CORPUS.environment.open(scenario, seed)

    assert verl_bridge.compute_score(evolve(pipeline, environment=Flaky()))(NAME, GOLD[3], "train-3")["score"] == 1.0


def test_a_batch_gets_the_scores_of_one_by_one() -> None:
    """As verl's reward manager ``batch`` asks: by these names, of several data sources."""
    texts = [*GOLD, "", "no", *GOLD]
    truths: list[Any] = [TASKS[number % 6].id for number in range(len(texts))]
    sources = [NAME if number % 3 else "tier-mini" for number in range(len(texts))]
    infos: list[Any] = [None, {}, {"truncated": True}] * len(texts)
    given = {"recipe": "tier", "corpus": NAME, "truncated": "floor", "floor": -1.0}
    found = compute_scores(
        data_sources=sources,
        solution_strs=texts,
        ground_truths=truths,
        extra_infos=infos[: len(texts)],
        **given,
    )
    rows = zip(sources, texts, truths, infos, strict=False)
    assert found == [compute_score(*row, **given) for row in rows]
    assert {row["score"] for row in found} > {-1.0, 1.0}


def test_a_batch_that_waits_waits_together_and_lost_samples_are_asked_again() -> None:
    class Meets(cw.AsyncRewardComponent):
        """Answers when all six wait; then one of them is lost once, and one for ever."""

        name = "meets"

        def __init__(self) -> None:
            self.here, self.all_here, self.asked = 0, asyncio.Event(), 0

        async def score(self, attempt: cw.Attempt) -> cw.Score:  # type: ignore[override]
            self.asked += 1
            self.here += 1
            if self.here == 6:
                self.all_here.set()
            async with asyncio.timeout(30):
                await self.all_here.wait()
            if attempt.task is TASKS[1] or (attempt.task is TASKS[2] and self.asked <= 6):
                raise cw.InfrastructureFailure("no answer")
            return cw.Score(1.0)

    meets = Meets()
    pipeline = cw.Pipeline(CORPUS, cw.RewardRecipe("meeting", (cw.Term(meets),)))
    function = verl_bridge.compute_score(pipeline, masked_score=-1.0, retries=2)
    found = function.many(GOLD, [task.id for task in TASKS])
    assert [row["score"] for row in found] == [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    assert meets.asked == 6 + 2 + 1


def test_schedules_get_the_step_if_the_data_says_it() -> None:
    heard = []

    class Late(cw.RewardComponent):
        name = "late"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            heard.append(attempt.progress)
            return cw.Score(1.0)

    recipe = cw.RewardRecipe("late", (cw.Term(Late()),))
    function = verl_bridge.compute_score(recipe, corpus=CORPUS, total_steps=10)
    function(NAME, "x", "train-0", {"global_steps": 4})
    function(NAME, "x", "train-0", {})
    assert [(one.step, one.total_steps) if one else None for one in heard] == [(4, 10), None]


def test_what_is_missing_is_said() -> None:
    with pytest.raises(cw.UsageError, match=r"set reward_kwargs\.corpus \(data_source 'ours'"):
        compute_score("ours", "", "train-0", {})
    with pytest.raises(UnknownName, match="task of"):
        compute_score(NAME, "", "train-x", {})
    with pytest.raises(DataError, match="id of a task"):
        compute_score(NAME, "", {"answer": 1}, {})
    with pytest.raises(RecipeError, match="no such file"):
        compute_score(NAME, "", "train-0", {}, recipe="tir")
    with pytest.raises(UnknownName, match="environment named 'bankin'"):
        verl_bridge.tool_config("bankin", "x.yaml")
    with pytest.raises(cw.UsageError, match="is not registered"):
        verl_bridge.tool_config(cw.environment("mine", tools=[]), "x.yaml")
    with pytest.raises(UnknownName, match="tool of banking"):
        verl_bridge.tool_config("banking", "x.yaml", tools=["fly"])


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        (("x", "train-0", {}), {"retrys": 1}, "^There is no option in reward_kwargs named 'retrys'. Did you mean 'ret"),
        (("x", "train-0", {}), {"retries": "1"}, "^'retries' is a whole number, 0 or more, not '1'$"),
        (("x", "train-0", {}), {"masked_score": "0"}, "^'masked_score' is a number, not '0'$"),
        (("x", "train-0", {}), {"total_steps": "9"}, "^'total_steps' is a whole number, 1 or more, not '9'$"),
        (("x", 3, {}), {}, "^'ground_truth' is the id of a task, a text, not 3, and 'extra_info' has no 'task_id'"),
        ((None, "train-0", {}), {}, "^task 'train-0': 'solution_str' is what was written, a text, not None$"),
        ((b"x", "train-0", {}), {}, "^task 'train-0': 'solution_str' is what was written, a text, not b'x'$"),
    ],
)
def test_what_a_caller_got_wrong_is_told(given: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(cw.UsageError, match=said):
        compute_score(NAME, *given, **options)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (([NAME], ["x", "y"], ["train-0", "train-1"]), "^'data_sources' has 1 rows for 2 of 'solution_strs'$"),
        (([NAME] * 2, ["x", "y"], ["train-0"]), "^'ground_truths' has 1 rows for 2 of 'solution_strs'$"),
        (([NAME] * 2, ["x", "y"], ["train-0"] * 2, [{}]), "^'extra_infos' has 1 rows for 2 of 'solution_strs'$"),
    ],
)
def test_columns_of_a_batch_are_as_long_as_each_other(columns: Any, said: str) -> None:
    with pytest.raises(cw.UsageError, match=said):
        compute_scores(*columns)


def test_rows_have_the_columns_that_verl_reads(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'data'")
    path = tmp_path / "new" / "train.parquet"
    assert verl_bridge.export(CORPUS, path, limit=6, agent="callwright") == 6
    read = parquet.read_table(path).to_pylist()
    for index, (row, task) in enumerate(zip(read, TASKS, strict=True)):
        assert row["data_source"] == NAME
        assert row["prompt"] == [message.to_openai() for message in build_messages(task, FORM)]
        assert row["reward_model"] == {"style": "rule", "ground_truth": task.id}
        assert (row["extra_info"]["index"], row["extra_info"]["split"]) == (index, "train")
        assert row["agent_name"] == "callwright"
        assert compute_score(row["data_source"], GOLD[index], row["reward_model"]["ground_truth"], {})["score"] == 1.0


def test_no_file_is_written_of_a_wrong_name_or_limit(tmp_path: Path) -> None:
    with pytest.raises(cw.UsageError, match=r"ends in \.parquet"):
        verl_bridge.export(CORPUS, tmp_path / "train.jsonl")
    for limit in (-1, 0):
        with pytest.raises(cw.UsageError, match=f"limit is {limit}"):
            verl_bridge.export(CORPUS, tmp_path / "train.parquet", limit=limit)
    assert not list(tmp_path.iterdir())


def test_rows_for_tools_open_the_session_of_their_task(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'data'")
    path = tmp_path / "train.parquet"
    verl_bridge.export(NAME, path, ir=None, limit=4)
    for row, task in zip(parquet.read_table(path).to_pylist(), TASKS, strict=False):
        assert row["prompt"] == [{"role": "user", "content": task.query}]
        info = row["extra_info"]
        assert info["tool_selection"] == list(task.tools)
        assert info["tools_kwargs"].keys() == CORPUS.environment.tools.keys()
        for kwargs in info["tools_kwargs"].values():
            assert kwargs == {"create_kwargs": {"scenario": task.scenario, "seed": task.seed}}


def test_rows_for_tools_carry_clock_and_hazards_of_their_task() -> None:
    hazards = Hazards([Fault("unavailable", 0.5)])

    class Moving:
        name, environment, splits = CORPUS.name, CORPUS.environment, CORPUS.splits

        def __getitem__(self, split: str) -> Any:
            return [evolve(task, clock=ClockPolicy(call=90), hazards=hazards) for task in TASKS]

        def task(self, task_id: str) -> Any:
            raise NotImplementedError

    for row in rows(Moving(), "train", None):
        for kwargs in row["extra_info"]["tools_kwargs"].values():
            assert read_policy(json.loads(kwargs["create_kwargs"]["clock"])) == ClockPolicy(call=90)
            assert read_hazards(json.loads(kwargs["create_kwargs"]["hazards"])) == hazards


def test_a_task_fixes_its_world(vault: Any, tmp_path: Path) -> None:
    """Whatever a recipe's seed is, sessions open with the task's, in scores and in the rows for verl's tools."""
    for seed in (0, 1):
        function = verl_bridge.compute_score("tier", corpus=vault, seed=seed)
        for task in [*vault["train"], *vault["evaluation"]]:
            assert function(vault.name, FORM.render(task.program), task.id, {})["score"] == 1.0
            assert vault.opened.pop() == task.seed
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'data'")
    verl_bridge.export(vault, tmp_path / "train.parquet", ir=None)
    infos = [row["extra_info"] for row in parquet.read_table(tmp_path / "train.parquet").to_pylist()]
    assert [info["tools_kwargs"]["turn"]["create_kwargs"] for info in infos] == [
        {"scenario": "", "seed": 5},
        {"scenario": "", "seed": 9},
    ]


def test_the_command_writes_the_same_file(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'data'")
    from callwright.commands.app import App
    from callwright_plugins.verl_bridge.command import verl_export

    registry = load_plugins()
    path, other = tmp_path / "a.parquet", tmp_path / "b.parquet"
    arguments = [NAME, str(path), "--limit", "3", "--agent", "callwright", "--corpus-option", "train_size=9"]
    done = CliRunner().invoke(verl_export, arguments, obj=App(registry=registry))
    assert done.exit_code == 0, done.output
    assert "3 rows in" in done.output
    verl_bridge.export(cw.corpus(NAME, train_size=9), other, limit=3, agent="callwright")
    assert parquet.read_table(path).equals(parquet.read_table(other))


def test_an_empty_split_and_a_bad_path_are_said(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra 'data'")
    with pytest.raises(DataError, match="is empty"):
        verl_bridge.export(cw.corpus(NAME, train_size=0), tmp_path / "x.parquet")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        verl_bridge.export(CORPUS, tmp_path / "file" / "x.parquet")


def test_configuration_files_are_json(tmp_path: Path) -> None:
    path = verl_bridge.tool_config("banking", tmp_path / "tools.yaml", tools=["list_accounts"])
    (line,) = json.loads(path.read_text())["tools"]
    assert line["config"] == {"type": "native", "environment": "banking", "tool": "list_accounts"}
    path = verl_bridge.tool_config("calendar", tmp_path / "tools.yaml", tools=["list_events"], options={"scale": 2})
    (line,) = json.loads(path.read_text())["tools"]
    assert line["config"]["options"] == {"scale": 2}
    with pytest.raises(cw.UsageError, match="is made already, with its own"):
        verl_bridge.tool_config(cw.environment("banking"), path, options={"scale": 2})
    path = verl_bridge.agent_loop_config(tmp_path / "loop.yaml", recipe="prove", corpus=NAME, limits={"turn_tokens": 9})
    (loop,) = json.loads(path.read_text())
    assert loop.pop("_target_").endswith("agent_loop.CallwrightAgentLoop")
    assert loop == {"name": "callwright", "recipe": "prove", "corpus": NAME, "limits": {"turn_tokens": 9}}


def test_scoring_imports_nothing_of_verl_or_torch() -> None:
    code = (
        "import sys; from callwright_plugins.verl_bridge.scoring import compute_score\n"
        f"print(compute_score({NAME!r}, 'no', 'train-3', {{}})['score'])\n"
        "print([name for name in ('torch', 'verl', 'ray', 'pyarrow', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["0.0", "[]"], done.stderr


def test_the_tests_against_verl_pass_in_its_own_environment() -> None:
    """verl's pins clash with ours, so that it mostly lives in an environment of its own."""
    python = os.environ.get("CALLWRIGHT_VERL_PYTHON")
    if not python:
        pytest.skip("set CALLWRIGHT_VERL_PYTHON to the interpreter of an environment with verl and callwright")
    command = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        str(Path(__file__).parent / "test_verl_package.py"),
    ]
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "plugins")])
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout


@pytest.mark.parametrize(
    ("options", "score"),
    [({}, 0.0), ({"truncated": "as_is"}, 1.0), ({"truncated": "overlong"}, 1.0), ({"floor": -2.0}, -2.0),
     ({"truncated": "mask", "masked_score": 0.25}, 0.25)],
)  # fmt: skip
def test_extra_info_may_say_that_it_was_cut_off(options: dict[str, Any], score: float) -> None:
    text, task = GOLD[3] + "and so on " * 260, TASKS[3]
    cut = compute_score(NAME, text, task.id, {"truncated": True}, **options)
    assert cut["score"] == score
    for info in (None, {}, {"truncated": False}, {"truncated": None}, {"truncated": "False"}):
        whole = compute_score(NAME, text, task.id, info, **options)
        assert (whole["score"], list(whole)) == (1.0, list(cut))
    assert cut.get("tier/truncated", 0.0) == (score - 1.0 if options.keys() <= {"floor"} else 0.0)


def test_a_masked_cut_needs_a_number_and_is_not_tried_again() -> None:
    counted: list[int] = []

    class Counting(cw.RewardRecipe):
        def score_attempt(self, attempt: cw.Attempt) -> cw.Reward:
            counted.append(1)
            return super().score_attempt(attempt)

    tier = cw.reward("tier")
    function = verl_bridge.compute_score(Counting("tier", tier.terms, truncated="mask"), corpus=CORPUS, retries=4)
    with pytest.raises(cw.InfrastructureFailure, match=r"was cut off by a limit of tokens.* set masked_score"):
        function(NAME, GOLD[3], TASKS[3].id, {"truncated": True})
    assert len(counted) == 1


def test_rows_for_verls_own_loop_know_no_users() -> None:
    class Talking:
        name, environment, splits = CORPUS.name, CORPUS.environment, CORPUS.splits

        def __getitem__(self, split: str) -> Any:
            return [evolve(task, user=cw.UserSpec("replayed")) for task in TASKS]

        def task(self, task_id: str) -> Any:
            raise NotImplementedError

    assert rows(Talking(), "train", FORM)  # the agent loop of the bridge asks them
    with pytest.raises(cw.UsageError, match=r"has a user \('replayed'\), and verl's own loop leads the conversation"):
        rows(Talking(), "train", None)
