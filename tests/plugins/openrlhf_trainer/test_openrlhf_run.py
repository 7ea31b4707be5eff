"""Runs from beginning to end over a stand-in for OpenRLHF: the folder, rows, checkpoints, Ctrl-C and going on."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import threading
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest

import callwright as cw
from callwright.commands.file_formats import schema_of
from callwright.episodes import PlainCodec
from callwright.errors import ComponentError, RunError, UsageError
from callwright.machines import make_executor
from callwright.machines.interrupts import Interrupted, answered
from callwright.training.ledger.seals import SEAL, examine, set_aside
from callwright.training.run_folder import Run
from callwright_plugins.openrlhf_trainer import prompts
from callwright_plugins.openrlhf_trainer.agent import Agent, reward_function
from callwright_plugins.openrlhf_trainer.checkpoints import newest_tag, step_of
from callwright_plugins.openrlhf_trainer.configuration import Configuration
from callwright_plugins.openrlhf_trainer.export import export
from callwright_plugins.openrlhf_trainer.interpreter import NoOpenRLHF, OpenRLHFRefuses
from callwright_plugins.openrlhf_trainer.prompts import digest_of_ids, load_tokenizer
from callwright_plugins.openrlhf_trainer.trainer import OpenRLHFTrainer

pytest.importorskip("torch", reason="needs the train extra")

OPTIONS: dict[str, Any] = {
    "steps": 4, "prompts": 2, "group": 3, "max_prompt_tokens": 9000, "max_new_tokens": 6000, "checkpoint_every": 2,
    "evaluate_every": 2, "evaluation_tasks": 1, "rollouts_per_step": 2, "evaluate_before": False,
}  # fmt: skip


class Heard:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.advanced = 0
        self.stages: list[tuple[str, int, int]] = []

    def start(self, stage: str, total: int, done: int = 0) -> None:
        self.stages.append((stage, total, done))

    def advance(self, units: int = 1, **figures: float) -> None:
        self.advanced += units

    def say(self, text: str) -> None:
        self.said.append(text)

    def finish(self) -> None:
        pass


def recipe_text(model: Path, turns: bool = True) -> str:
    limits = "[turns]\nassistant_turns = 2\n" if turns else ""
    return (
        f'name = "sums"\nseed = 3\nmodel = "{model}"\ntrainer = "openrlhf"\n{limits}'
        '[corpus]\nname = "toolworld-mini-v1"\ntrain_size = 6\nevaluation_size = 1\n'
    )


class Late(Heard):
    """A reporter that lets the trainer listen only once the whole training is over."""

    def __init__(self, model: Path) -> None:
        super().__init__()
        self.model = model

    def start(self, stage: str, total: int, done: int = 0) -> None:
        super().start(stage, total, done)
        waiting, end = threading.Event(), time.monotonic() + 300
        while stage == "training" and not (self.model / "config.json").exists():
            assert time.monotonic() < end, "the stand-in does not come to an end"
            waiting.wait(0.05)


def start(
    folder: Path,
    text: str,
    make_pipeline: Any,
    python: str,
    mode: str = "",
    heard: Heard | None = None,
    **options: Any,
) -> tuple[Run, Heard]:
    run = Run.create(folder, recipe_text=text, manifest={})
    heard = heard or Heard()
    trainer = OpenRLHFTrainer(python=python, environment={"STAND_IN": mode}, **{**OPTIONS, **options})
    trainer.train(make_pipeline(text), run, reporter=heard)
    return run, heard


@pytest.fixture(scope="module")
def finished(
    tmp_path_factory: pytest.TempPathFactory, model: Path, make_pipeline: Any, stand_in: str
) -> tuple[Run, Heard]:
    """A run that nothing disturbed, and what its reporter heard. It alone has the real tokenizer."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    return start(folder, recipe_text(model), make_pipeline, stand_in, mode="transformers")


@pytest.fixture
def exported(tmp_path: Path, finished: tuple[Run, Heard]) -> Path:
    """The folder of a run for which the prompts are there: those of the finished one, whose recipe is the same."""
    folder = tmp_path / "run"
    (folder / "openrlhf").mkdir(parents=True)
    for name in ("train.jsonl", "evaluation.jsonl", "prompts.json"):
        shutil.copy(finished[0].path / "openrlhf" / name, folder / "openrlhf" / name)
    return folder


def test_a_run_from_beginning_to_end(model: Path, make_pipeline: Any, finished: tuple[Run, Heard]) -> None:
    run, heard = finished
    metrics = run.rows("metrics.jsonl")
    assert [row["step"] for row in metrics] == [1, 2, 3, 4]
    validate = jsonschema_rs.validator_for(schema_of("metrics")).validate
    for row in metrics:
        validate(row)
        assert row["rollouts"] == 6
        assert row["masked"] == 0
        assert row["loss"] == 0.25
        assert "kl" not in row  # it was no number
        assert set(row["scores"]) == {"format", "names", "parameters", "types", "execution", "answer"}
        assert row["openrlhf"]["timing/step_total"] == 1.0
    rollouts = run.rows("rollouts.jsonl")
    assert [row["step"] for row in rollouts] == [1, 1, 2, 2, 3, 3, 4, 4]
    for row in rollouts:
        jsonschema_rs.validator_for(schema_of("rollouts")).validate({**row, "advantage": 0.0})
        assert len(row["turns"]) == 2
        assert row["stop"] == "assistant_turns"
    evaluation = run.read_json("evaluation.json")
    assert [one["step"] for one in evaluation["during"]] == [2]
    assert evaluation["after"]["step"] == 4
    assert evaluation["after"]["n"] > 0
    assert (run.checkpoints / "final" / "config.json").is_file()
    assert heard.advanced == 4
    assert heard.stages == [("prompts", 1, 0), ("training", 4, 0)]
    assert any(text.startswith("approximated: algorithm.std_epsilon") for text in heard.said)
    argv = json.loads((run.path / "openrlhf" / "argv.json").read_text())
    assert argv[argv.index("--rollout.batch_size") + 1] == "2"
    script = (run.path / "openrlhf" / "train.sh").read_text()
    assert "openrlhf.cli.train_ppo_ray" in script
    again = Heard()  # a finished run is left alone
    OpenRLHFTrainer(python="nowhere", **OPTIONS).train(make_pipeline(recipe_text(model)), run, reporter=again)
    assert again.stages == []


def test_a_trainer_that_hears_of_everything_late_writes_the_same(
    exported: Path, model: Path, make_pipeline: Any, stand_in: str, finished: tuple[Run, Heard]
) -> None:
    late = Late(exported / "checkpoints" / "openrlhf-model")
    run, _ = start(exported, recipe_text(model), make_pipeline, stand_in, heard=late)
    for name in ("metrics.jsonl", "rollouts.jsonl"):
        assert run.rows(name) == finished[0].rows(name)
    assert run.read_json("evaluation.json") == finished[0].read_json("evaluation.json")


def test_exported_prompts(model: Path, make_pipeline: Any, finished: tuple[Run, Heard]) -> None:
    from transformers import AutoTokenizer

    run, _ = finished
    pipeline = make_pipeline(recipe_text(model))
    tokenizer = AutoTokenizer.from_pretrained(model)
    rows = [json.loads(line) for line in (run.path / "openrlhf" / "train.jsonl").read_text().splitlines()]
    labels = [json.loads(row["label"]) for row in rows]
    assert len(rows) == OPTIONS["steps"] * OPTIONS["prompts"]
    assert [label["row"] for label in labels] == list(range(8))
    assert sorted(label["task"] for label in labels[:6]) == sorted(task.id for task in pipeline.tasks("train"))
    for row, label in zip(rows, labels, strict=True):
        task = pipeline.corpus.task(label["task"])
        text = tokenizer.apply_chat_template(
            [message.to_openai() for message in pipeline.messages(task)], tokenize=False, add_generation_prompt=True
        )
        assert row["prompt"] == text
        assert all(name in row["prompt"] for name in task.tools)
        assert task.query in row["prompt"]
    made = json.loads((run.path / "openrlhf" / "prompts.json").read_text())
    assert made["too_long"] == 0


@pytest.mark.slow
def test_prompts_by_processes_are_the_same_bytes(
    exported: Path, finished: tuple[Run, Heard], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = exported / "openrlhf"
    recipe = folder / "recipe.toml"
    shutil.copy(finished[0].path / "recipe.toml", recipe)
    written = json.loads((finished[0].path / "openrlhf" / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**written, "recipe": str(recipe)}))
    files = ("train.jsonl", "evaluation.jsonl", "prompts.json")
    before = {name: (folder / name).read_bytes() for name in files}
    for name in files:
        (folder / name).unlink()
    asked: list[int] = []
    monkeypatch.setattr(prompts, "_processors", lambda: 8)
    monkeypatch.setattr(prompts, "A_PROCESS", 6)  # six tasks to train on, and as many to evaluate on
    monkeypatch.setattr(prompts, "BATCH", 2)
    monkeypatch.setattr(
        prompts, "make_executor", lambda name, workers: asked.append(workers) or make_executor(name, workers)
    )
    export(folder)
    assert asked == [2]  # for both splits, since each process loads tokenizer and corpus
    assert {name: (folder / name).read_bytes() for name in files} == before


def test_prompts_that_are_too_long_are_left_out_and_never_cut(
    tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    with pytest.raises(UsageError, match="all 6 prompts of the split 'train' have more than 50 tokens"):
        start(tmp_path / "run", recipe_text(model), make_pipeline, stand_in, max_prompt_tokens=50)


def test_a_failure_shows_the_end_of_the_log_and_the_run_goes_on_from_its_checkpoint(
    exported: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    folder, text = exported, recipe_text(model)
    with pytest.raises(RunError, match=r"exit status 7(.|\n)*something broke at last"):
        start(folder, text, make_pipeline, stand_in, "fail 3")
    assert [row["step"] for row in Run(folder).rows("metrics.jsonl")] == [1, 2, 3]
    run, heard = start(folder, text, make_pipeline, stand_in, "fail 3")
    assert heard.stages == [("training", 4, 2)]  # the prompts are there
    assert [row["step"] for row in run.rows("metrics.jsonl")] == [1, 2, 3, 4]
    assert [row["step"] for row in run.rows("rollouts.jsonl")] == [1, 1, 2, 2, 3, 3, 4, 4]
    evaluation = run.read_json("evaluation.json")
    assert [one["step"] for one in evaluation["during"]] == [2]
    assert evaluation["after"]["step"] == 4
    assert json.loads((folder / "openrlhf" / "argv.json").read_text())[-1] == "--ckpt.load_enable"


@pytest.mark.parametrize(("sampler", "right"), [('sampler = "gold"\n', 1.0), ("", None)])
def test_the_model_is_measured_before_the_first_step_and_training_goes_on_where_that_fails(
    sampler: str, right: float | None, exported: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    text = sampler + recipe_text(model)
    run, heard = start(exported, text, make_pipeline, stand_in, evaluate_before=True, job_address=None)
    before = run.read_json("evaluation.json")["before"]
    warned = [said for said in heard.said if "not evaluated before the first step" in said]
    if right is None:  # the stand-in's environment has no vLLM
        assert before is None
        assert len(warned) == 1
        assert "vllm" in warned[0]
    else:
        assert (before["step"], before["overall"]) == (0, right)
        assert before["n"] == run.read_json("evaluation.json")["after"]["n"]
        assert not warned
    assert [row["step"] for row in run.rows("metrics.jsonl")] == [1, 2, 3, 4]


@pytest.mark.parametrize("role", ["_actor", "_critic"])
@pytest.mark.parametrize("by", ["itself", "doctor"])
def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_is_taken(
    role: str,
    by: str,
    exported: Path,
    model: Path,
    make_pipeline: Any,
    stand_in: str,
    finished: tuple[Run, Heard],
) -> None:
    folder, text = exported, recipe_text(model)
    with pytest.raises(RunError):  # both checkpoints are there, and the step after them was heard of
        start(folder, text, make_pipeline, stand_in, "fail 3", checkpoint_every=1)
    assert examine(folder).damage == []
    checkpoints = folder / "checkpoints" / "openrlhf"
    assert not (checkpoints / "_actor" / "global_step3" / SEAL).exists()  # whether it was whole nobody heard
    shutil.rmtree(checkpoints / "_actor" / "global_step3")
    shutil.rmtree(checkpoints / "_critic" / "global_step3")
    for one in ("_actor", "_critic"):
        (checkpoints / one / "latest").write_text("global_step2")
    weights = checkpoints / role / "global_step2" / "model_states.pt"
    weights.write_bytes(b"\xff" + weights.read_bytes()[1:])
    found = examine(folder)
    assert any("global_step2/model_states.pt is damaged" in reason for reason in found.damage)
    assert found.good == "global_step1"
    assert (checkpoints / "_actor" / "global_step2") in found.bad
    if by == "doctor":
        for path in found.bad:
            set_aside(path)
        assert examine(folder).damage == []
    run, heard = start(folder, text, make_pipeline, stand_in, checkpoint_every=1)
    assert heard.stages == [("training", 4, 1)]
    if by == "itself":
        assert any("global_step2/model_states.pt is damaged" in said for said in heard.said)
    for name in ("metrics.jsonl", "rollouts.jsonl"):  # those of lost steps are made again, and there once
        assert run.rows(name) == finished[0].rows(name)
    aside = folder / "checkpoints" / "set-aside-openrlhf_actor-global_step2"
    assert (aside / "model_states.pt").exists()
    assert examine(folder).damage == []
    assert examine(folder).good == "global_step4"
    assert (folder / "checkpoints" / "final" / SEAL).is_file()


def test_rows_that_a_checkpoint_lacks_are_refused_by_name(
    exported: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    folder, text = exported, recipe_text(model)
    with pytest.raises(RunError):
        start(folder, text, make_pipeline, stand_in, "fail 3")
    (folder / "rollouts.jsonl").unlink()
    with pytest.raises(RunError, match=r"rollouts\.jsonl is not as global_step2 left it: it is missing"):
        start(folder, text, make_pipeline, stand_in)
    assert [row["step"] for row in Run(folder).rows("metrics.jsonl")] == [1, 2, 3]


def test_before_the_first_checkpoint_a_run_begins_again(
    exported: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    folder, text = exported, recipe_text(model)
    with pytest.raises(RunError):
        start(folder, text, make_pipeline, stand_in, "fail 1")
    (folder / "checkpoints" / "openrlhf" / "_actor" / "global_step2").mkdir(parents=True)  # half of one
    assert newest_tag(folder / "checkpoints" / "openrlhf") == ""
    run, heard = start(folder, text, make_pipeline, stand_in)
    assert heard.stages == [("training", 4, 0)]
    assert [row["step"] for row in run.rows("metrics.jsonl")] == [1, 2, 3, 4]


def test_the_checkpoint_that_openrlhf_would_load(tmp_path: Path) -> None:
    actor = tmp_path / "_actor"
    for name, tag in (("global_step50", "global_step50\n"), ("best_global_step75", "best_global_step75")):
        (actor / name).mkdir(parents=True)
        assert newest_tag(tmp_path) != tag.strip()
        (actor / "latest").write_text(tag)
        assert newest_tag(tmp_path) == tag.strip()
    (actor / "latest").write_text("global_step100\n")
    assert newest_tag(tmp_path) == ""
    assert [step_of(tag) for tag in ("global_step5", "best_global_step7", "set-aside-global_step5", "x")] == [
        5,
        7,
        0,
        0,
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_reaches_the_program_as_ctrl_c(
    number: int, exported: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    folder, text = exported, recipe_text(model)
    log = folder / "openrlhf" / "log.txt"
    stopper = threading.Thread(target=_interrupt_when, args=(log, "hanging", number), daemon=True)
    stopper.start()
    with pytest.raises(Interrupted) as stopped, answered():
        start(folder, text, make_pipeline, stand_in, "hang 3")
    stopper.join()
    assert stopped.value.exit_status == 128 + number
    assert not (folder / "openrlhf" / "failure.json").exists()
    run, heard = start(folder, text, make_pipeline, stand_in, "hang 3")
    assert heard.stages == [("training", 4, 2)]
    assert [row["step"] for row in run.rows("metrics.jsonl")] == [1, 2, 3, 4]


def _interrupt_when(log: Path, word: str, number: int) -> None:
    waiting = threading.Event()
    while not (log.exists() and word in log.read_text()):
        waiting.wait(0.05)
    os.kill(os.getpid(), number)


def test_a_bug_in_an_episode_ends_the_run_and_is_named(
    exported: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    folder, text = exported, recipe_text(model)
    with pytest.raises(RunError):
        start(folder, text, make_pipeline, stand_in, "fail 1")
    rows = (folder / "openrlhf" / "train.jsonl").read_text()
    (folder / "openrlhf" / "train.jsonl").write_text(rows.replace('\\"prompt\\": \\"', '\\"prompt\\": \\"0'))
    with pytest.raises(ComponentError, match=r"DataError: the prompt of task .* comes out in other tokens"):
        start(folder, text, make_pipeline, stand_in)
    said = json.loads((folder / "openrlhf" / "failure.json").read_text())
    assert said["error"] == "DataError"
    assert "Traceback" in said["traceback"]


def test_what_openrlhf_refuses_is_said_in_its_words(
    tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str
) -> None:
    with pytest.raises(OpenRLHFRefuses, match=r"OpenRLHF 0\.11\.2 refuses the arguments: never is no option"):
        start(tmp_path / "run", recipe_text(model), make_pipeline, stand_in, flags=["--actor.never"])


def test_an_interpreter_without_openrlhf(tmp_path: Path, model: Path, make_pipeline: Any) -> None:
    import sys
    from importlib.util import find_spec

    with pytest.raises(UsageError, match=r"the option 'python' names 'nowhere', which is no interpreter; make an env"):
        start(tmp_path / "run", recipe_text(model), make_pipeline, "nowhere")
    if find_spec("openrlhf") is None:
        with pytest.raises(NoOpenRLHF, match=r"has no package 'openrlhf'; .*pip install 'openrlhf\[vllm\]==0\.11\.2'"):
            start(tmp_path / "run", recipe_text(model), make_pipeline, sys.executable)


def test_objects_of_this_process_are_refused(tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str) -> None:
    from attrs import evolve

    text = recipe_text(model)
    pipeline = make_pipeline(text)
    other = evolve(pipeline, environment=pipeline.corpus.environment)
    run = Run.create(tmp_path / "run", recipe_text=text, manifest={})
    with pytest.raises(UsageError, match="the environment of this pipeline is an object of this process"):
        OpenRLHFTrainer(python=stand_in, **OPTIONS).train(other, run)


def test_strict_refuses_and_names_everything(tmp_path: Path, model: Path, make_pipeline: Any, stand_in: str) -> None:
    with pytest.raises(UsageError, match=r"strict: OpenRLHF cannot(.|\n)*algorithm\.std_epsilon: 1e-09 in place of 0"):
        start(tmp_path / "run", recipe_text(model), make_pipeline, stand_in, strict=True)
    assert not (tmp_path / "run" / "openrlhf").exists()


def test_the_generated_files_are_python_and_toml(finished: tuple[Run, Heard]) -> None:
    import ast

    run, _ = finished
    tree = ast.parse((run.path / "openrlhf" / "entry.py").read_text())
    found = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {str(module).split(".")[0] for module in found}
    assert imported == {"openrlhf", "callwright_plugins"}
    assert tomllib.loads((run.path / "recipe.toml").read_text())["name"] == "sums"


class Answering:
    """An engine that writes the same ids each time, or the next of several."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.ids = ids

    async def generate(self, context: Any, params: Any) -> Any:
        await asyncio.sleep(0)
        return SimpleNamespace(outputs=[SimpleNamespace(token_ids=self.ids, logprobs=None, finish_reason="stop")])


def in_folder(folder: Path, model: Path, pipeline: Any, limits: cw.TurnLimits) -> Any:
    """What an agent reads: its configuration and the prompts. Returns the tokenizer."""
    Configuration("recipe.toml", str(folder), None, (), str(model), limits, 1, 1, 0).write(folder / "config.json")
    tokenizer = load_tokenizer(str(model))
    prompts = {"form": "compact", "ends": [tokenizer.eos_token_id], "end_texts": [tokenizer.eos_token]}
    (folder / "prompts.json").write_text(json.dumps(prompts))
    return tokenizer


def label_of(corpus: Any, tokenizer: Any, task: cw.Task, row: int, copies: int = 1, **more: Any) -> str:
    codec = PlainCodec(tokenizer, corpus.prompt_text, ends=frozenset([tokenizer.eos_token_id]))
    label = {"task": task.id, "split": "train", "row": row, "copies": copies, "logged": 0, "evaluation": False, **more}
    return json.dumps({**label, "prompt": digest_of_ids(codec.prompt_ids((), task))})


@pytest.mark.parametrize("seed", [0, 1])
def test_a_task_fixes_its_world(
    seed: int, vault: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor and the reward function open the sessions of the tasks' seeds, whatever the recipe's is."""
    pipeline = cw.Pipeline(vault, conditions=cw.Conditions(seed=seed))
    monkeypatch.setattr("callwright_plugins.openrlhf_trainer.agent.load_pipeline", lambda configuration: pipeline)
    tokenizer = in_folder(tmp_path, model, pipeline, cw.TurnLimits(assistant_turns=1, user_turns=1, turn_tokens=600))
    end = tokenizer.eos_token
    agent, score = Agent(tmp_path / "config.json"), reward_function(tmp_path / "config.json")
    for number, task in enumerate(vault["train"]):
        text = pipeline.parser.render(task.program)
        ids = [*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id]
        label = label_of(vault, tokenizer, task, number)
        given = SimpleNamespace(max_tokens=600, logprobs=None)
        made = asyncio.run(agent.execute("", label, given, 4000, tokenizer, Answering(ids)))
        assert made["reward"] == 1.0
        assert score([f"asked{text}{end}"], ["asked"], [label])["rewards"] == 1.0
        assert vault.opened == [task.seed] * 2
        vault.opened.clear()


def test_users_are_those_of_the_row_and_the_sample_whatever_the_process_did_before(
    vault_with_users: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, copies = vault_with_users, 3
    pipeline = cw.Pipeline(corpus, conditions=cw.Conditions(seed=4), registry=corpus.registry)
    monkeypatch.setattr("callwright_plugins.openrlhf_trainer.agent.load_pipeline", lambda configuration: pipeline)
    limits = cw.TurnLimits(assistant_turns=3, user_turns=3, turn_tokens=600)
    tokenizer = in_folder(tmp_path, model, pipeline, limits)
    task, other = corpus["train"]
    ids = [*tokenizer.encode(pipeline.parser.render(cw.Program()), add_special_tokens=False), tokenizer.eos_token_id]

    async def sampled(agent: Agent, row: int, of: cw.Task) -> None:
        label, given = label_of(corpus, tokenizer, of, row, copies), SimpleNamespace(max_tokens=600, logprobs=None)
        asked = (agent.execute("", label, given, 4000, tokenizer, Answering(ids)) for _ in range(copies))
        await asyncio.gather(*asked)

    def spoke(rows: Sequence[tuple[int, cw.Task]]) -> list[set[int]]:
        agent = Agent(tmp_path / "config.json")
        found = []
        for row, of in rows:
            corpus.spoke.clear()
            asyncio.run(sampled(agent, row, of))
            assert [name for name, _ in corpus.spoke] == [of.id] * copies
            found.append({seed for _, seed in corpus.spoke})
        return found

    whole = spoke([(0, task), (1, other), (2, task)])
    assert [len(seeds) for seeds in whole] == [copies] * 3, "the samples of a prompt have users that differ"
    assert not whole[0] & whole[2], "and so have two steps"
    assert spoke([(2, task)]) == whole[2:], "a run that goes on has the same ones"
    assert spoke([(1, other), (0, task)]) == [whole[1], whole[0]]
