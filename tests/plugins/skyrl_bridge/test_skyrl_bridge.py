"""The bridge to SkyRL against the published skyrl-gym: its registry, its way of making and driving environments."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import callwright as cw
from callwright.errors import DataError, InfrastructureFailure, UnknownName, UsageError
from callwright.walk.completion import Completion
from callwright.walk.limits import TurnLimits
from callwright_plugins import skyrl_bridge

skyrl_gym = pytest.importorskip("skyrl_gym", reason="needs skyrl-gym: pip install 'callwright[skyrl]'")

CORPUS = "toolworld-mini-v1"


@pytest.fixture(autouse=True)
def _clean_registry() -> Iterator[None]:
    from skyrl_gym.envs.registration import registry

    before = dict(registry)
    yield
    registry.clear()
    registry.update(before)


def made(row: dict[str, Any], turns: int = 1) -> Any:
    """An environment as SkyRL's generator makes one of a row (``skyrl_gym_generator.py`` of skyrl 0.3.0)."""
    extras = {key: value for key, value in row.items() if key not in ("prompt", "env_class")}
    extras["max_turns"] = turns
    return skyrl_gym.make(row["env_class"], env_config={}, extras=extras)


def driven(row: dict[str, Any], answers: list[str], turns: int) -> tuple[float, Any, list[Any]]:
    """The sum of rewards, the environment, and what the model read, driven as the generator drives it."""
    env = made(row, turns)
    history, _ = env.init(row["prompt"])
    heard, total, done = list(history), 0.0, False
    for answer in answers:
        assert not done
        out = env.step(answer)
        total, done = total + out["reward"], out["done"]
        assert out.get("postprocessed_action") is None
        heard += [{"role": "assistant", "content": answer}, *out["observations"]]
    assert done
    return total, env, heard


FORM = cw.parser("json")


def answers_of(task: cw.Task) -> dict[str, list[str]]:
    """Ways to do a task, by name."""
    assert task.program is not None
    gold = FORM.render(task.program)
    nothing = FORM.render(cw.Program(()))
    return {"gold": [gold], "nothing": [nothing], "words": ["I do not know."], "gold then done": [gold, nothing]}


@pytest.mark.parametrize("recipe", ["tier", "tier-guarded", "simple", "toolrl"])
@pytest.mark.parametrize("turns", [1, 4])
def test_rewards_are_those_of_our_own_episodes(recipe: str, turns: int) -> None:
    skyrl_bridge.register(recipe, corpus=CORPUS)
    rows = skyrl_bridge.rows(recipe, corpus=CORPUS, split="evaluation", turns=turns, limit=21)
    pipeline = cw.Pipeline(CORPUS, recipe, "json")
    seen = set()
    for row in rows:
        task = pipeline.task(row["task_id"])
        for name, answers in answers_of(task).items():
            limits = TurnLimits(assistant_turns=turns)
            conversation = pipeline.conversation(
                task, pipeline.messages(task, limits=limits), cw.Conditions(limits=limits)
            )
            used = []
            for answer in answers:
                if not conversation.over:
                    conversation.accept(Completion(answer))
                    used.append(answer)
            if not conversation.over:  # what asks for another answer gets one
                used.append(FORM.render(cw.Program(())))
                conversation.accept(Completion(used[-1]))
            expected = pipeline.score(conversation.attempt).total
            total, env, heard = driven(row, used, turns)
            assert total == expected, (task.id, name)
            assert heard == [{"role": one.role, "content": one.text} for one in conversation.messages]
            assert env.get_metrics()["turns"] == len(used)
            seen.add((name, len(used)))
    assert {name for name, _ in seen} == {"gold", "nothing", "words", "gold then done"}
    assert max(used for _, used in seen) == (1 if turns == 1 else 2)


def test_only_the_last_step_earns_and_results_are_read_in_between() -> None:
    skyrl_bridge.register("tier", corpus=CORPUS, observation_role="user")
    row = next(
        row
        for row in skyrl_bridge.rows("tier", corpus=CORPUS, split="evaluation", turns=3, limit=30)
        if row["extra_info"]["depth"] > 1
    )
    env = made(row, 3)
    env.init(row["prompt"])
    first = env.step(answers_of(cw.corpus(CORPUS).task(row["task_id"]))["gold"][0])
    assert (first["reward"], first["done"]) == (0.0, False)
    assert first["observations"][0]["role"] == "user"
    assert '"result"' in first["observations"][0]["content"]
    last = env.step(FORM.render(cw.Program(())))
    assert (last["done"], last["observations"]) == (True, [])
    assert last["reward"] == 1.0
    assert last["metadata"]["explanation"] == "1: every point"
    with pytest.raises(UsageError, match="is over: call init"):
        env.step("more")
    env.close()
    env.close()
    again, _ = env.init(row["prompt"])
    assert again == row["prompt"]


def test_metrics_are_averaged_by_skyrl() -> None:
    from skyrl_gym.metrics import aggregate_for_environment

    skyrl_bridge.register("tier", corpus=CORPUS)
    rows = skyrl_bridge.rows("tier", corpus=CORPUS, split="evaluation", limit=7)
    corpus = cw.corpus(CORPUS)
    found = []
    for number, row in enumerate(rows):
        ways = answers_of(corpus.task(row["task_id"]))
        total, env, _ = driven(row, ways["words" if number == 0 else "gold"], 1)
        metrics = env.get_metrics()
        assert metrics["reward"] == total
        assert metrics.keys() >= {"format", "answer", "turns", "calls", "failed_calls", "finished", "masked"}
        found.append(metrics)
    averaged = aggregate_for_environment("callwright", found)
    assert averaged["reward"] == pytest.approx(6 / 7)
    assert (averaged["turns"], averaged["finished"], averaged["masked"]) == (1.0, 1.0, 0.0)


def test_the_same_again_changes_nothing_and_another_is_refused() -> None:
    assert skyrl_bridge.register("tier", corpus=CORPUS) == "callwright"
    assert skyrl_bridge.register("tier", corpus=CORPUS) == "callwright"
    with pytest.raises(UsageError, match="give id=…, and the same to export"):
        skyrl_bridge.register("simple", corpus=CORPUS)
    assert skyrl_bridge.register("simple", corpus=CORPUS, id="simple") == "simple"
    # What Ray sends to a worker is this text.
    spec = skyrl_gym.envs.registration.spec("callwright")
    assert json.loads(spec.to_json())["kwargs"]["corpus"] == CORPUS


@pytest.mark.parametrize(
    ("given", "words", "kind"),
    [
        ({"recipe": "tire", "corpus": CORPUS}, "tier", UnknownName),
        ({"recipe": "tier", "corpus": "depthbench"}, "corpus", UnknownName),
        ({"recipe": "tier"}, "pass corpus=", UsageError),
        ({"recipe": "tier", "corpus": CORPUS, "observation_role": "system"}, "'tool' or 'user'", UsageError),
    ],
)
def test_wrong_names_are_said_at_once(given: Any, words: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=words):
        skyrl_bridge.register(**given)


def test_objects_are_refused_by_what_skyrl_does() -> None:
    from callwright_plugins.skyrl_bridge.naming import named

    with pytest.raises(UsageError, match="processes of its own"):
        named(cw.reward("tier"), CORPUS, "json", 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.jsonl", "rows.json"])
def test_skyrls_loader_reads_the_files(tmp_path: Path, name: str) -> None:
    datasets = pytest.importorskip("datasets", reason="needs datasets: pip install 'callwright[trl]'")
    path = tmp_path / name
    assert skyrl_bridge.export("tier", path, corpus=CORPUS, split="evaluation", limit=5, turns=4) == 5
    kind = "parquet" if name.endswith("parquet") else "json"
    read = datasets.load_dataset(kind, data_files=str(path), cache_dir=str(tmp_path / "cache"))["train"]
    skyrl_bridge.register("tier", corpus=CORPUS)
    row = dict(read[3])
    expected = skyrl_bridge.rows("tier", corpus=CORPUS, split="evaluation", limit=5, turns=4)[3]
    assert row == expected
    total, _, _ = driven(row, answers_of(cw.corpus(CORPUS).task(row["task_id"]))["gold"], 1)
    assert total == 1.0


def test_files_that_skyrl_does_not_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.parquet, \.json and \.jsonl"):
        skyrl_bridge.export("tier", tmp_path / "rows.csv", corpus=CORPUS, limit=1)
    with pytest.raises(UsageError, match="limit is -1"):
        skyrl_bridge.rows("tier", corpus=CORPUS, limit=-1)
    with pytest.raises(UsageError, match=r"generator\.max_turns"):
        skyrl_bridge.export("tier", tmp_path / "rows.json", corpus=CORPUS, turns=0)


def test_a_row_without_a_task_is_refused() -> None:
    skyrl_bridge.register("tier", corpus=CORPUS)
    with pytest.raises(DataError, match=r"skyrl_bridge\.export"):
        made({"env_class": "callwright", "prompt": []})


class Flaky:
    """A session whose calls fail by the machinery as long as ``left`` says."""

    left = 0


@pytest.fixture
def flaky(monkeypatch: pytest.MonkeyPatch) -> type[Flaky]:
    from callwright.environments.protocol import Outcome

    kind = type(cw.corpus(CORPUS).environment.open())
    real = kind.call

    def call(session: Any, tool: str, arguments: Any) -> Any:
        if Flaky.left:
            Flaky.left -= 1
            return Outcome("infrastructure_error", None, "crashed", "the server went away")
        return real(session, tool, arguments)

    monkeypatch.setattr(kind, "call", call)
    Flaky.left = 0
    return Flaky


def failing(flaky: type[Flaky], failures: int, **options: Any) -> Any:
    skyrl_bridge.register("tier", corpus=CORPUS, **options)
    row = next(
        row
        for row in skyrl_bridge.rows("tier", corpus=CORPUS, split="evaluation", turns=3, limit=30)
        if row["extra_info"]["depth"] == 1
    )
    env = made(row, 3)
    env.init(row["prompt"])
    flaky.left = failures
    return env, env.step(answers_of(cw.corpus(CORPUS).task(row["task_id"]))["gold"][0])


def test_what_the_machinery_lost_is_done_again(flaky: type[Flaky]) -> None:
    env, out = failing(flaky, 1)
    assert flaky.left == 0
    assert (out["done"], len(out["observations"])) == (False, 1)
    assert env.step(FORM.render(cw.Program(())))["reward"] == 1.0


@pytest.mark.parametrize(("retries", "earned"), [(0, None), (1, 1.0)])
def test_a_reward_that_could_not_find_out_is_asked_for_again(retries: int, earned: float | None) -> None:
    class Late(cw.RewardComponent):
        name = "late"
        asked = 0

        def score(self, attempt: cw.Attempt) -> cw.Score:
            self.asked += 1
            if self.asked == 1:
                raise InfrastructureFailure("the judge is busy")
            return cw.Score(1.0)

    skyrl_bridge.register("tier", corpus=CORPUS, retries=retries)
    (row,) = skyrl_bridge.rows("tier", corpus=CORPUS, split="evaluation", turns=1, limit=1)
    env = made(row)
    env._pipeline = evolve(env._pipeline, reward=cw.RewardRecipe("judged", (cw.Term(Late()),)))
    env.init(row["prompt"])
    if earned is None:
        with pytest.raises(InfrastructureFailure, match="the judge is busy"):
            env.step("anything")
    else:
        assert env.step("anything")["reward"] == earned


def test_what_stays_lost_stops_the_run_or_earns_what_was_said(flaky: type[Flaky]) -> None:
    with pytest.raises(InfrastructureFailure, match=r"masked_score=0\.0"):
        failing(flaky, 10)
    skyrl_gym.envs.registration.deregister("callwright")
    env, out = failing(flaky, 10, masked_score=-0.5)
    assert (out["done"], out["reward"]) == (True, -0.5)
    assert env.get_metrics()["masked"] is True


def test_one_line_registers_in_another_process() -> None:
    code = (
        "from callwright_plugins import skyrl_bridge\n"
        f"skyrl_bridge.register('tier', corpus={CORPUS!r})\n"
        "import skyrl_gym\n"
        "env = skyrl_gym.make('callwright', env_config={}, extras={'task_id': 'evaluation-16', 'max_turns': 1})\n"
        "env.init([{'role': 'user', 'content': 'x'}])\n"
        "print(env.step('I do not know.')['done'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_in_a_worker_of_ray() -> None:
    ray = pytest.importorskip("ray", reason="needs Ray: pip install 'callwright[ray]'")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, ignore_reinit_error=True)
    try:

        def work() -> float:
            import skyrl_gym

            from callwright_plugins import skyrl_bridge

            skyrl_bridge.register("tier", corpus="toolworld-mini-v1")
            (row,) = skyrl_bridge.rows("tier", corpus="toolworld-mini-v1", split="evaluation", limit=1)
            env = skyrl_gym.make("callwright", env_config={}, extras={**row, "max_turns": 1})
            env.init(row["prompt"])
            import callwright as cw

            task = cw.corpus("toolworld-mini-v1").task(row["task_id"])
            return float(env.step(cw.parser("json").render(task.program))["reward"])

        assert ray.get(ray.remote(work).remote()) == 1.0
    finally:
        ray.shutdown()


def test_without_skyrl_gym_the_extra_is_named() -> None:
    code = (
        "import importlib.util as u; real = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'skyrl_gym' else real(name, *more)\n"
        "from callwright.errors import MissingExtra\nfrom callwright_plugins import skyrl_bridge\n"
        f"try: skyrl_bridge.register('tier', corpus={CORPUS!r})\nexcept MissingExtra as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip().endswith("pip install 'callwright[skyrl]'"), done.stderr
