"""The verl bridge against verl itself: its loaders, its tools, its tool loop and its agent loop, on a CPU."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve

import callwright as cw
from callwright.environments import ClockPolicy
from callwright.episodes import ChatCodec, EngineOutput, TokenEpisode
from callwright.episodes.results import describe_step
from callwright.errors import DataError
from callwright.walk.conditions import Conditions
from callwright_plugins import verl_bridge

with warnings.catch_warnings():  # they warn of what is theirs while they are imported
    warnings.simplefilter("ignore")
    pytest.importorskip("verl", reason="needs verl: pip install 'callwright[verl]', or CALLWRIGHT_VERL_PYTHON")
    pytest.importorskip("torch", reason="needs torch")
    import hydra
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop import agent_loop as theirs
    from verl.experimental.agent_loop.tool_agent_loop import AgentData, ToolAgentLoop
    from verl.tools.tool_registry import initialize_tools_from_config
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.workers.rollout.replica import TokenOutput

    from callwright_plugins.verl_bridge import agent_loop
    from callwright_plugins.verl_bridge.agent_loop import CallwrightAgentLoop

NAME = "toolworld-mini-v1"
CORPUS = cw.corpus(NAME)
TASK = CORPUS.task("train-3")
HERMES = (
    "{% if tools %}<|begin|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|end|>\n{% endif %}"
    "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n{{ c.function | tojson }}\n</tool_call>{% endfor %}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
)


@pytest.fixture(autouse=True)
def _their_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from callwright_plugins.local_trainer.models.vocabulary import build_tokenizer

    made = build_tokenizer(CORPUS.vocabulary())  # type: ignore[attr-defined]
    made.chat_template = HERMES
    return made


class Server:
    """verl's server: it gives scripted texts, or fails, and remembers what it was asked."""

    def __init__(self, tokenizer: Any, *replies: str | Exception) -> None:
        self.tokenizer, self.replies, self.asked = tokenizer, list(replies), []
        self.step = 4

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: Any, **more: Any) -> Any:
        self.asked.append((request_id, list(prompt_ids), dict(sampling_params)))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        ids = [*self.tokenizer.encode(reply, add_special_tokens=False), self.tokenizer.eos_token_id]
        ids = ids[: sampling_params.get("max_tokens", len(ids))]
        logprobs = [-0.5 - at for at in range(len(ids))]
        extra = {"max_global_steps": self.step}
        return TokenOutput(token_ids=ids, log_probs=logprobs, num_preempted=1, extra_fields=extra)


def configuration(**rollout: Any) -> Any:
    return OmegaConf.create(
        {
            "actor_rollout_ref": {
                "rollout": {
                    "prompt_length": 60_000,
                    "response_length": 4000,
                    "multi_turn": {
                        "max_user_turns": 5,
                        "max_assistant_turns": 10,
                        "max_parallel_calls": 4,
                        "max_tool_response_length": 4000,
                        "tool_response_truncate_side": "middle",
                        "format": "hermes",
                    },
                    "full_determinism": False,
                    **rollout,
                }
            },
            "data": {"apply_chat_template_kwargs": {}},
            "trainer": {"total_training_steps": 8},
        }
    )


def row(task: Any = TASK, ir: str | None = "json") -> dict[str, Any]:
    """What verl hands to an agent loop of a row of the parquet file."""
    from callwright_plugins.verl_bridge.parquet import rows

    parser = None if ir is None else cw.parser(ir)
    number = int(task.id.rpartition("-")[2])
    made = rows(CORPUS, "train", parser, limit=number + 1)[number]
    return {
        "raw_prompt": made.pop("prompt"),
        "tools_kwargs": made["extra_info"].get("tools_kwargs", {}),
        "index": number,
        **made,
    }


def run(coroutine_of: Callable[[], Any]) -> Any:
    """verl's loops look for the running event loop when they are made."""

    async def inner() -> Any:
        return await coroutine_of()

    return asyncio.run(inner())


def episode(
    server: Server, tokenizer: Any, config: Any = None, data: Any = None, *, priority: int = 3, **options: Any
) -> Any:
    """An episode by the agent loop as verl makes and calls it: by hydra, from the file of agent loops."""

    async def inner() -> Any:
        made = hydra.utils.instantiate(
            OmegaConf.create(
                {"name": "x", "_target_": f"{CallwrightAgentLoop.__module__}.CallwrightAgentLoop", **options}
            ),
            trainer_config=theirs.DictConfigWrap(config=config or configuration()),
            server_manager=server,
            tokenizer=tokenizer,
            processor=None,
            hf_model_type=None,
            dataset_cls=RLHFDataset,
            data_config=theirs.DictConfigWrap((config or configuration()).data),
            tools=theirs.ToolListWrap([]),
        )
        return await made.run({"temperature": 1.0}, priority=priority, **(data or row()))

    return asyncio.run(inner())


def calls(form: str = "json") -> tuple[str, str]:
    """The right program of the task, and the answer without calls."""
    parser = cw.parser(form)
    assert TASK.program is not None
    return parser.render(TASK.program), parser.render(cw.Program())


# The reward ----------------------------------------------------------------------------------------------------------


def test_verl_loads_the_reward_function_and_its_configuration() -> None:
    config = OmegaConf.create(
        {
            "reward": {
                "custom_reward_function": {
                    "path": "pkg://callwright_plugins.verl_bridge.scoring",
                    "name": "compute_score",
                    "reward_kwargs": {"recipe": "tier", "corpus": NAME, "ir": "json"},
                }
            }
        }
    )
    function = get_custom_reward_fn(config)
    found = function(data_source="ours", solution_str=calls()[0], ground_truth=TASK.id, extra_info={"num_turns": 2})
    assert found["score"] == 1.0


def test_verls_reward_manager_scores_with_it(tokenizer: Any) -> None:
    import numpy as np
    import torch
    from tensordict import TensorDict
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager

    ids = tokenizer.encode(calls()[0], add_special_tokens=False)
    batch = TensorDict(
        {"responses": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids) + 2, dtype=torch.long)},
        batch_size=1,
    )
    one = row()
    keys = ("data_source", "reward_model", "extra_info")
    columns = {key: np.array([one[key]], dtype=object) for key in keys}

    async def inner() -> Any:
        manager = NaiveRewardManager(OmegaConf.create({}), tokenizer, verl_bridge.compute_score("tier", corpus=CORPUS))
        return await manager.run_single(DataProto(batch=batch, non_tensor_batch=columns))

    found = run(inner)
    assert found["reward_score"] == 1.0
    assert found["reward_extra_info"]["tier/answer"] == 1.0


# The agent loop ------------------------------------------------------------------------------------------------------


def test_an_episode_of_the_agent_loop_is_a_rollout(tokenizer: Any) -> None:
    """Ids, masks, log-probabilities and reward are those of a rollout that is driven by hand."""
    replies = calls()
    server = Server(tokenizer, *replies)
    output = episode(server, tokenizer, recipe="tier", corpus=NAME)
    conditions = cw.Conditions(limits=cw.TurnLimits())
    messages = tuple(map(cw.Message.from_openai, row()["raw_prompt"]))
    ours = TokenEpisode(TASK, cw.parser("json"), ChatCodec(tokenizer), messages, conditions)
    for text in replies:
        ids = (*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id)
        assert server.asked.pop(0)[1] == list(ours.context)
        ours.accept(EngineOutput(ids, tuple(-0.5 - at for at in range(len(ids)))))
    assert ours.over
    assert output.prompt_ids == list(ours.prompt_ids)
    assert output.response_ids == list(ours.response_ids)
    assert output.response_mask == list(ours.mask)
    assert output.response_logprobs == pytest.approx(list(ours.logprobs))
    reward = cw.reward("tier").score_attempt(ours.attempt)
    assert output.reward_score == reward.total == 1.0
    extra = output.extra_fields["reward_extra_info"]
    assert extra["score"] == 1.0
    assert extra["tier/answer"] == reward.scores["answer"].score.value
    assert output.num_turns == len(ours.messages) - 1
    assert output.metrics.num_preempted == 2
    tensors = output.as_dict()
    assert tensors["response_mask"].tolist() == output.response_mask


@pytest.mark.parametrize("seed", [0, 1])
def test_a_task_fixes_its_world(seed: int, vault: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from callwright.pipeline import open_pipeline

    made = "callwright_plugins.verl_bridge.agent_loop.open_named"
    monkeypatch.setattr(made, lambda recipe, *given: open_pipeline(recipe, vault, seed=given[-1]))
    for task in vault["train"]:
        data = {**row(), "raw_prompt": [{"role": "user", "content": task.query}]}
        data["reward_model"] = {"style": "rule", "ground_truth": task.id}
        server = Server(tokenizer, cw.parser("json").render(task.program))
        output = episode(server, tokenizer, data=data, recipe="tier", seed=seed, limits={"assistant_turns": 1})
        assert output.reward_score == 1.0
        assert vault.opened.pop() == task.seed
        assert not vault.opened


def test_users_are_those_of_the_step_and_the_sample_whatever_the_process_did_before(
    vault_with_users: Any, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callwright.pipeline import open_pipeline

    corpus = vault_with_users
    made = "callwright_plugins.verl_bridge.agent_loop.open_named"
    monkeypatch.setattr(
        made, lambda recipe, *given: open_pipeline(recipe, corpus, seed=given[3], registry=corpus.registry)
    )
    answer = cw.parser("json").render(cw.Program())

    def seed_of(task: cw.Task, sample: int, step: int, *, fails: bool = False, seed: int = 7) -> int:
        data = {**row(), "raw_prompt": [{"role": "user", "content": task.query}]}
        data["reward_model"] = {"style": "rule", "ground_truth": task.id}
        server = Server(tokenizer, *([RuntimeError("busy")] if fails else []), answer)
        server.step = step
        corpus.spoke.clear()
        episode(server, tokenizer, data=data, priority=sample, recipe="tier", seed=seed, limits={"assistant_turns": 3})
        ((name, found),) = corpus.spoke
        assert name == task.id
        return int(found)

    task, other = corpus["train"]
    samples = [(task, 0, 1), (task, 1, 1), (other, 2, 1), (task, 0, 2), (task, 1, 2)]
    begun = {(of.id, sample, step): seed_of(of, sample, step) for of, sample, step in samples}
    assert len(set(begun.values())) == len(samples)
    for of, sample, step in reversed(samples):  # as in a process that goes on at another place
        assert seed_of(of, sample, step) == begun[of.id, sample, step]
    assert seed_of(task, 0, 1, fails=True) == begun[task.id, 0, 1]
    assert seed_of(task, 0, 1, seed=8) != begun[task.id, 0, 1]


def test_turns_and_tokens_are_bounded_by_verls_configuration(tokenizer: Any) -> None:
    first, _ = calls()
    config = configuration()
    config.actor_rollout_ref.rollout.multi_turn.max_assistant_turns = 2
    server = Server(tokenizer, first, first, first)
    output = episode(server, tokenizer, config, recipe="tier", corpus=NAME)
    assert len(server.asked) == 2
    config = configuration(response_length=10)
    server = Server(tokenizer, first)
    output = episode(server, tokenizer, config, recipe="tier", corpus=NAME)
    assert server.asked[0][2]["max_tokens"] == 10
    assert len(output.response_ids) == 10
    assert output.reward_score == 0.0
    server = Server(tokenizer, first)
    output = episode(server, tokenizer, recipe="tier", corpus=NAME, limits={"assistant_turns": 1, "turn_tokens": 12})
    assert len(output.response_ids) == 12


def test_a_pipeline_recipe_brings_its_turns(tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'corpus = "{NAME}"\nreward = "tier"\n[turns]\nassistant_turns = 1\n')
    server = Server(tokenizer, calls()[0])
    output = episode(server, tokenizer, recipe=str(path))
    assert len(server.asked) == 1
    assert output.reward_score == 1.0


def test_a_prompt_is_never_cut(tokenizer: Any) -> None:
    with pytest.raises(DataError, match="more than the 100 of prompt_length"):
        episode(Server(tokenizer), tokenizer, configuration(prompt_length=100), recipe="tier", corpus=NAME)


def test_a_failing_server_is_tried_again_then_stops_or_masks(tokenizer: Any) -> None:
    replies = calls()
    server = Server(tokenizer, replies[0], OSError("gone"), replies[1])
    output = episode(server, tokenizer, recipe="tier", corpus=NAME)
    assert output.reward_score == 1.0
    assert server.asked[1][1] == server.asked[2][1], "what was sampled before is kept"
    with pytest.raises(cw.InfrastructureFailure, match="failed 2 times: verl's server failed: OSError: gone"):
        episode(Server(tokenizer, OSError("gone"), OSError("gone")), tokenizer, recipe="tier", corpus=NAME)
    server = Server(tokenizer, replies[0], OSError("gone"), OSError("gone"))
    output = episode(server, tokenizer, recipe="tier", corpus=NAME, on_lost="mask")
    assert output.reward_score == 0.0
    assert set(output.response_mask) == {0}
    assert output.extra_fields["reward_extra_info"]["tier/masked"] == 1.0
    server = Server(tokenizer, OSError("gone"))
    output = episode(server, tokenizer, recipe="tier", corpus=NAME, on_lost="mask", retries=0)
    assert (len(output.response_ids), output.response_mask) == (1, [0])


def test_an_episode_that_nobody_could_score_stops_the_run_or_is_masked(
    tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Gone(cw.RewardComponent):
        name = "gone"

        def score(self, attempt: cw.Attempt) -> cw.Score:
            raise cw.InfrastructureFailure("the judge is gone")

    pipeline = cw.Pipeline(CORPUS, cw.RewardRecipe("judged", (cw.Term(Gone()),)))
    monkeypatch.setattr(agent_loop, "open_named", lambda *_: pipeline)
    with pytest.raises(cw.InfrastructureFailure, match=r"has no reward: .*the judge is gone"):
        episode(Server(tokenizer, *calls()), tokenizer)
    output = episode(Server(tokenizer, *calls()), tokenizer, on_lost="mask")
    assert output.reward_score == 0.0
    assert set(output.response_mask) == {0}


def test_verl_scores_where_the_loop_does_not(tokenizer: Any) -> None:
    output = episode(Server(tokenizer, *calls()), tokenizer, recipe="tier", corpus=NAME, score=False)
    assert output.reward_score is None


def test_the_file_of_agent_loops_is_read_as_verl_reads_it(tokenizer: Any, tmp_path: Path) -> None:
    path = verl_bridge.agent_loop_config(
        tmp_path / "loop.yaml", recipe="tier", corpus=NAME, limits={"assistant_turns": 3}
    )
    (config,) = OmegaConf.load(path)
    assert config.name == "callwright"
    assert theirs._agent_loop_registry["callwright"]["_target_"] == config["_target_"]
    options = {key: value for key, value in OmegaConf.to_container(config).items() if key not in ("name", "_target_")}
    output = episode(Server(tokenizer, *calls()), tokenizer, **options)
    assert output.reward_score == 1.0


# Tools ---------------------------------------------------------------------------------------------------------------


def make_tools(tmp_path: Path, environment: str, names: list[str] | None = None) -> dict[str, Any]:
    path = verl_bridge.tool_config(environment, tmp_path / "tools.yaml", tools=names)
    return {tool.name: tool for tool in initialize_tools_from_config(path)}


@pytest.mark.parametrize("environment", [NAME, "banking", "travel_booking", "calendar"])
def test_verl_makes_the_tools_with_their_whole_schemas(tmp_path: Path, environment: str) -> None:
    made = make_tools(tmp_path, environment)
    specs = {name: spec for name, spec in cw.environment(environment).tools.items() if not spec.hidden}
    assert list(made) == list(specs)
    for name, tool in made.items():
        shown = tool.tool_schema.model_dump(exclude_unset=True, exclude_none=True)
        assert shown == json.loads(json.dumps(specs[name].to_openai()))


def test_a_conversation_has_one_session_and_instances_have_their_own(tmp_path: Path) -> None:
    made = make_tools(tmp_path, "banking")
    reading = next(tool for tool in made.values() if tool.spec.read_only and not tool.spec.parameters.get("required"))
    opened: list[Any] = []
    for tool in made.values():
        tool.environment = Counting(tool.environment, opened)
        tool._conditions = Conditions(isolation="none")  # it is seen from here what is opened

    def data() -> Any:
        return AgentData([], None, None, None, None, {}, "id", {})

    async def inner() -> Any:
        one, other = data(), data()
        texts = []
        for conversation in (one, one, other, None, None):
            for tool in (reading, reading):
                instance, _ = await tool.create(create_kwargs={"scenario": "", "seed": 1})
                response, reward, metrics = await tool.execute(instance, {}, agent_data=conversation)
                assert (reward, metrics["executed"]) == (0.0, 1.0)
                texts.append(response.text)
                await tool.release(instance)
        return texts

    texts = run(inner)
    assert len(set(texts)) == 1
    session = cw.environment("banking").open("", 1)
    assert json.loads(texts[0])["result"] == session.call(reading.name, {}).value
    gc.collect()
    assert len(opened) == 2 + 4, "one for each of two conversations, one for each instance without"
    assert all(one.closed for one in opened), "sessions of conversations are closed with them"

    async def released() -> None:
        instance, _ = await reading.create()
        await reading.release(instance)
        await reading.execute(instance, {})

    with pytest.raises(cw.UsageError, match="was not created, or is released"):
        run(released)


@pytest.mark.parametrize("kind", ["mcp", "openenv"])
def test_tools_of_a_served_environment_share_one_session_in_a_conversation(
    tmp_path: Path, kind: str, served: Callable[..., dict[str, Any]]
) -> None:
    options = served(kind)
    path = verl_bridge.tool_config(kind, tmp_path / "tools.yaml", tools=["put", "look"], options=options)
    made = {tool.name: tool for tool in initialize_tools_from_config(path)}
    assert list(made) == ["put", "look"]
    assert made["put"].environment is made["look"].environment  # a server is started once, not for each tool

    async def inner() -> list[Any]:
        conversations = [AgentData([], None, None, None, None, {}, "id", {}) for _ in range(2)]
        found = []
        for conversation in conversations:
            for name, arguments in (("put", {"name": "milk"}), ("put", {"name": "milk"}), ("look", {})):
                instance, _ = await made[name].create(create_kwargs={"seed": 3})
                response, _, _ = await made[name].execute(instance, arguments, agent_data=conversation)
                found.append(json.loads(response.text)["result"])
                await made[name].release(instance)
        return found

    shelf = {"milk": 2}
    assert run(inner) == [1, 2, shelf, 1, 2, shelf]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """``served(kind)``: options of the environment ``mcp`` or ``openenv`` that lead to a served shelf."""
    plugin = tmp_path / "verl_shelf_plugin.py"
    plugin.write_text(SHELF)
    started: list[Any] = []

    def start(kind: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "callwright", "-p", plugin.stem]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
        if kind == "mcp":
            pytest.importorskip("mcp", reason="needs mcp: pip install 'callwright[mcp]'")
            return {"command": [*command, "env", "serve", "shelf", "--stdio"], "env": {"PYTHONPATH": env["PYTHONPATH"]}}
        process = subprocess.Popen(
            [*command, "openenv", "serve", "shelf", "--port", "0"], stderr=subprocess.PIPE, text=True, env=env
        )
        started.append(process)
        assert process.stderr is not None
        return {"url": process.stderr.readline().rsplit(" ", 1)[1].strip()}

    yield start
    for process in started:
        process.terminate()
        process.wait()
        process.stderr.close()


SHELF = '''
import callwright as cw


@cw.tool
def put(shelf: dict[str, int], /, name: str) -> int:
    """Put one on the shelf."""
    shelf[name] = shelf.get(name, 0) + 1
    return shelf[name]


@cw.tool(read_only=True)
def look(shelf: dict[str, int], /) -> dict[str, int]:
    """What is there."""
    return shelf


@cw.hookimpl
def callwright_environments():
    yield cw.Lazy("shelf", lambda: cw.environment("shelf", tools=[put, look], state=lambda name, seed: {}))
'''


class Counting:
    """An environment that remembers its sessions."""

    def __init__(self, inner: Any, opened: list[Any]) -> None:
        self.inner, self.opened = inner, opened
        self.name, self.tools, self.pure = inner.name, inner.tools, inner.pure

    def open(self, scenario: str, seed: int) -> Any:
        session = Closing(self.inner.open(scenario, seed))
        self.opened.append(session)
        return session


class Closing:
    """A session that knows whether it was closed."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.closed = inner, False

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        assert not self.closed
        return self.inner.call(tool, arguments)

    def digest(self) -> str:
        digest: str = self.inner.digest()
        return digest

    def close(self) -> None:
        self.closed = True
        self.inner.close()


def test_time_moves_in_sessions_as_the_row_says(tmp_path: Path) -> None:
    (tool,) = (tool for name, tool in make_tools(tmp_path, "food_delivery").items() if name == "list_past_orders")

    async def called(**given: Any) -> str:
        instance, _ = await tool.create(create_kwargs=given)
        for _ in range(30):
            response, _, _ = await tool.execute(instance, {})
        await tool.release(instance)
        return str(response.text)

    policy = ClockPolicy(call=3600)
    expected = cw.Conditions(clock=policy).execution(
        cw.Task("t", "", tool.environment.tools, cw.Answer(), tool.environment)
    )
    trace = expected.run(cw.Program(tuple(cw.Call(at, "list_past_orders", {}) for at in range(30))))
    told = run(lambda: called(clock=json.dumps(asdict(policy))))
    assert json.loads(told) == json.loads(describe_step(evolve(trace.records[-1], call=0)))
    assert json.loads(told) != json.loads(run(called))


def test_verls_own_tool_loop_executes_calls_in_the_tasks_session(tokenizer: Any, tmp_path: Path) -> None:
    task = next(task for task in CORPUS["train"][:40] if task.depth == 1 and task.program is not None)
    assert task.program is not None
    call = task.program.calls[0]
    said = json.dumps({"name": call.tool, "arguments": dict(call.arguments)})
    server = Server(tokenizer, f"<tool_call>\n{said}\n</tool_call>", "There it is.")
    made = make_tools(tmp_path, NAME)
    data = row(task, ir=None)
    config = configuration()

    async def inner() -> Any:
        loop = ToolAgentLoop(
            theirs.DictConfigWrap(config=config),
            server,
            tokenizer,
            None,
            RLHFDataset,
            theirs.DictConfigWrap(config.data),
            tools=theirs.ToolListWrap(list(made.values())),
        )
        return await loop.run({}, **data)

    output = run(inner)
    outcome = CORPUS.environment.open(task.scenario, 0).call(call.tool, dict(call.arguments))
    shown = tokenizer.decode(server.asked[1][1])
    expected = json.dumps(
        {"id": 0, "name": call.tool, "result": outcome.value}, separators=(",", ":"), ensure_ascii=False
    )
    assert expected in shown
    assert 0 in output.response_mask
    offered = [name for name in CORPUS.environment.tools if f'"name": "{name}"' in tokenizer.decode(server.asked[0][1])]
    assert sorted(offered) == sorted(task.tools), "a task is offered its own tools"


# Data ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ir", ["json", None])
def test_verls_dataset_reads_the_file(tokenizer: Any, tmp_path: Path, ir: str | None) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra 'data'")
    path = tmp_path / "train.parquet"
    verl_bridge.export(CORPUS, path, ir=ir, limit=6, agent="callwright")
    config = OmegaConf.create(
        {
            "prompt_key": "prompt",
            "max_prompt_length": 60_000,
            "cache_dir": str(tmp_path / "cache"),
            "filter_overlong_prompts": False,
        }
    )
    dataset = RLHFDataset(str(path), tokenizer, config)
    assert len(dataset) == 6
    found = dataset[3]
    assert found["data_source"] == NAME
    assert found["reward_model"]["ground_truth"] == TASK.id
    assert found["agent_name"] == "callwright"
    assert list(found["raw_prompt"])[-1]["content"] == TASK.query
    if ir is None:
        assert list(found["extra_info"]["tool_selection"]) == list(TASK.tools)
        assert found["tools_kwargs"][next(iter(TASK.tools))]["create_kwargs"]["scenario"] == TASK.scenario
    else:
        output = episode(Server(tokenizer, *calls()), tokenizer, data=found, recipe="tier")
        assert output.reward_score == 1.0
