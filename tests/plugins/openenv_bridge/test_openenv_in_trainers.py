"""An OpenEnv environment where trainers meet it: the bridges to TRL and SkyRL, and episodes of several turns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import callwright as cw
from callwright.pipeline import open_pipeline
from callwright.walk.completion import Completion

LADDER: Any = {
    "title": "ClimbAction",
    "type": "object",
    "properties": {"rungs": {"type": "integer", "minimum": 1}},
    "required": ["rungs"],
}
FORM = cw.parser("json")


class Ladder:
    """An environment of three rungs; only reaching the top pays."""

    def __init__(self) -> None:
        self.height = 0

    def __call__(self, message: Any) -> Any:
        if message["type"] == "state":
            return {"type": "state", "data": {"height": self.height}}
        if message["type"] == "reset":
            self.height = 0
            return self.observed(f"Climb. Seed {message['data']['seed']}.", None)
        self.height += message["data"]["rungs"]
        return self.observed("", 1.0 if self.height == 3 else 0.0)

    def observed(self, told: str, reward: Any) -> Any:
        observation = {"told": told} if told else {"height": self.height}
        done = self.height >= 3
        return {"type": "observation", "data": {"observation": observation, "reward": reward, "done": done}}


@pytest.fixture
def ladder(speak: Callable[..., str]) -> str:
    """Its URL."""
    return speak(Ladder(), LADDER)


def climb(rungs: int) -> str:
    """An answer that climbs."""
    return FORM.render(cw.Program((cw.Call(0, "climb", {"rungs": rungs}),)))


def test_an_episode_of_several_turns_earns_what_the_environment_gives(ladder: str) -> None:
    pipeline = open_pipeline("openenv", cw.corpus("openenv", url=ladder, tool="climb", first_seed=5))
    task = pipeline.task("train-2")
    prompt = "\n".join(message.text for message in pipeline.messages(task))
    assert "Climb. Seed 7." in prompt
    for steps, total in (((1, 2), 1.0), ((2, 2), 0.0), ((1,), 0.0)):
        conversation = pipeline.conversation(task)
        for rungs in steps:
            conversation.accept(Completion(climb(rungs)))
        if steps == (1, 2):
            assert "The episode is over." in conversation.messages[-1].text
        if not conversation.over:
            conversation.accept(Completion(FORM.render(cw.Program(()))))
        assert pipeline.score(conversation.attempt).total == total


def test_trls_environment_factory_takes_it(ladder: str) -> None:
    from callwright_plugins import trl_bridge

    corpus = cw.corpus("openenv", url=ladder, tool="climb")
    made = trl_bridge.environment_factory(corpus, "openenv")()
    made.reset(task_id="train-0")
    assert '"height":1' in made.climb(rungs=1)
    assert made.get_reward() == 0.0
    assert '"height":3' in made.climb(rungs=2)
    assert made.get_reward() == 1.0
    made.reset(task_id="train-1")
    assert '"height":1' in made.climb(rungs=1)
    made._execution.close()


def test_skyrl_takes_it_by_a_pipeline_recipe(ladder: str, tmp_path: Path) -> None:
    skyrl_gym = pytest.importorskip("skyrl_gym", reason="needs skyrl-gym: pip install 'callwright[skyrl]'")
    from callwright_plugins import skyrl_bridge

    recipe = tmp_path / "openenv.toml"
    recipe.write_text(
        f'[corpus]\nname = "openenv"\nurl = "{ladder}"\ntool = "climb"\ntrain_size = 3\n\n'
        '[reward]\nname = "openenv"\nhigh = 2.0\n'
    )
    id = skyrl_bridge.register(str(recipe), id="ladder")
    try:
        row = skyrl_bridge.rows(str(recipe), turns=4, id=id)[1]
        env = skyrl_gym.make(id, env_config={}, extras={**row, "max_turns": 4})
        env.init(row["prompt"])
        assert env.step(climb(1))["done"] is False
        env.step(climb(2))
        assert env.step(FORM.render(cw.Program(())))["reward"] == 1.0
    finally:
        skyrl_gym.envs.registration.deregister(id)
