"""Whole supervised runs: what they leave, what they learn, what is shown, and how they fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from attrs import evolve
from jsonschema import Draft202012Validator
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

import callwright as cw
from callwright.commands.file_formats import schema_of
from callwright.errors import DataError, RecipeError, UsageError
from callwright.language.messages import ToolCall
from callwright.pipeline import Pipeline, build_pipeline, create_trainer
from callwright.plugins import Registry, load_plugins
from callwright.recipe_file import parse_recipe
from callwright.training.run_folder import Run
from callwright_plugins import chat_ir, local_trainer, policy_gradient, toolrl_rewards, toolrl_rows
from callwright_plugins.local_trainer.learning.demonstrations import Bound, encode, of_tasks
from callwright_plugins.local_trainer.models.policy import Policy
from callwright_plugins.local_trainer.options import SupervisedOptions
from callwright_plugins.local_trainer.run.training import make_policy as policy_of
from callwright_plugins.report.page import write_report
from callwright_plugins.toolrl_rows.corpus import ToolRLRows
from callwright_plugins.toolworld.corpus import ToolWorldCorpus

RECIPE = """
name = "small-sft"
seed = 7
corpus = "toolworld-mini-v1"

[model.tiny]
width = 16
layers = 1
heads = 2
ffn = 16

[trainer]
name = "sft"
source = "references"
epochs = 2
batch = 6
learning_rate = 0.01
warm_up = 2
max_new_tokens = 12
evaluate_every = 3
checkpoint_every = 2
rollouts_per_evaluation = 3
"""


@pytest.fixture
def make_sft(registry: Registry, small_corpus: Any) -> Callable[..., Pipeline]:
    def make(*overrides: str, corpus: Any = None, **more: Any) -> Pipeline:
        loaded = parse_recipe(RECIPE, "sft.toml", overrides)
        return build_pipeline(loaded, more.pop("registry", registry), corpus=corpus or small_corpus, **more)

    return make


Pipelines = Callable[..., Pipeline]


def train(pipeline: Pipeline, folder: Path, reporter: Any = None) -> Run:
    run = Run.create(folder, recipe_text=pipeline.recipe.effective_text(), manifest={})
    more = {} if reporter is None else {"reporter": reporter}
    create_trainer(pipeline.recipe, pipeline.registry).train(pipeline, run, **more)
    return run


def files(folder: Path) -> dict[str, bytes]:
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in kept
        if path.name not in ("timings.jsonl", "training.pt", "digests.json")
    }


def test_what_a_run_leaves(tmp_path: Path, make_sft: Pipelines) -> None:
    run = train(make_sft('trainer.best="loss"'), tmp_path / "a")
    metrics = run.rows("metrics.jsonl")
    assert [row["step"] for row in metrics] == list(range(1, 8))  # 2 passes over 20, 6 at a time
    assert [row["demonstrations"] for row in metrics] == [6] * 6 + [4]
    assert metrics[-1]["epoch"] == 2
    assert all(row["tokens"] > 0 and row["gradient_norm"] > 0 and row["reward"] is None for row in metrics)
    assert metrics[-1]["loss"] < metrics[0]["loss"]
    told = run.read_json("demonstrations.json")
    assert (told["source"], told["shown"], told["too_long"], told["steps"], told["epochs"]) == (
        "references",
        20,
        0,
        7,
        2,
    )
    assert sum(row["tokens"] for row in metrics) == 2 * told["learnt_tokens"]
    evaluation = run.read_json("evaluation.json")
    assert [part["step"] for part in evaluation["during"]] == [3, 6]
    for part in (evaluation["before"], *evaluation["during"], evaluation["after"]):
        assert part["n"] == 7
        assert 0 <= part["reward"] <= 1
    assert evaluation["after"]["loss"] < evaluation["before"]["loss"]
    rollouts = run.rows("rollouts.jsonl")
    assert [row["step"] for row in rollouts] == [0] * 3 + [3] * 3 + [6] * 3 + [7] * 3
    assert sorted(path.name for path in run.checkpoints.iterdir()) == ["best", "final", "train-000007"]
    for name, rows in (("metrics", metrics), ("rollouts", rollouts), ("evaluation", [evaluation])):
        for row in rows:
            Draft202012Validator(schema_of(name)).validate(row)
    for name in ("best", "final"):
        model = AutoModelForCausalLM.from_pretrained(run.checkpoints / name, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(run.checkpoints / name, local_files_only=True)
        assert len(tokenizer) == model.config.vocab_size


def test_a_seed_fixes_every_byte_and_a_finished_run_is_left_alone(tmp_path: Path, make_sft: Pipelines) -> None:
    first, second = (train(make_sft(), tmp_path / name) for name in "ab")
    assert files(first.path) == files(second.path)
    assert files(first.path)["metrics.jsonl"] != files(train(make_sft("seed=8"), tmp_path / "c").path)["metrics.jsonl"]
    stamps = {path: path.stat().st_mtime_ns for path in first.path.rglob("*")}
    train(make_sft(), tmp_path / "a")
    assert stamps == {path: path.stat().st_mtime_ns for path in first.path.rglob("*")}


def test_the_best_weights_are_those_of_the_best_evaluation(tmp_path: Path, make_sft: Pipelines) -> None:
    """With a rate that diverges after a while the best is not the last; it is what a run that ends there ends with."""
    wild = ("trainer.schedule=constant", "trainer.warm_up=0", "trainer.learning_rate=1.0", "trainer.evaluate_every=1")
    run = train(make_sft(*wild, 'trainer.best="loss"'), tmp_path / "a")
    evaluation = run.read_json("evaluation.json")
    losses = [
        evaluation["before"]["loss"],
        *(part["loss"] for part in evaluation["during"]),
        evaluation["after"]["loss"],
    ]
    best = losses.index(min(losses))
    assert best < len(losses) - 1
    found = load_file(run.checkpoints / "best" / "model.safetensors")
    final = load_file(run.checkpoints / "final" / "model.safetensors")
    assert any((found[name] != final[name]).any() for name in found)
    reached = train(
        make_sft(
            f'model={{path="{run.checkpoints / "best"}"}}',
            "trainer={name='sft', source='references', steps=0, max_new_tokens=12}",
        ),
        tmp_path / "b",
    ).read_json("evaluation.json")
    assert reached["before"]["loss"] == pytest.approx(min(losses), rel=1e-6)


def test_eight_examples_are_learnt_by_heart(tmp_path: Path, make_sft: Pipelines) -> None:
    """Greedy accuracy and reward of 1 on what was shown, from nothing."""
    run = train(
        make_sft(
            "model.tiny={width=64, layers=2, heads=4, ffn=128}",
            "trainer={name='sft', source='references', steps=160, batch=8, learning_rate=0.004, warm_up=0.05, "
            "max_new_tokens=110, micro_batches=2}",
            "corpus.evaluation=train",
            corpus=ToolWorldCorpus(train_size=8, evaluation_size=1),
        ),
        tmp_path,
    )
    evaluation = run.read_json("evaluation.json")
    assert evaluation["before"]["overall"] == 0
    assert (evaluation["after"]["overall"], evaluation["after"]["n"]) == (1.0, 8)
    assert evaluation["after"]["reward"] == pytest.approx(1.0)
    assert evaluation["after"]["loss"] < 0.02


def test_its_model_is_the_start_of_reinforcement_learning(
    tmp_path: Path, make_sft: Pipelines, make_pipeline: Pipelines
) -> None:
    """A run folder as a model: the local trainer goes on where the supervised run ended."""
    first = train(make_sft("model.tiny={width=32, layers=1, heads=2, ffn=64}", "trainer.epochs=20"), tmp_path / "sft")
    local = train(
        make_pipeline(f'model={{path="{first.path}"}}', "trainer.warm_start=0", "trainer.steps=2"), tmp_path / "grpo"
    )
    shown = first.read_json("evaluation.json")["after"]
    before = local.read_json("evaluation.json")["before"]
    assert {**before, "reward": shown["reward"], "loss": shown["loss"]} == shown
    reference = load_file(local.checkpoints / "reference" / "model.safetensors")
    final = load_file(first.checkpoints / "final" / "model.safetensors")
    assert all((reference[name] == final[name]).all() for name in reference)
    assert len(local.rows("metrics.jsonl")) == 2


def test_a_run_that_has_not_ended_is_no_model(tmp_path: Path, make_sft: Pipelines) -> None:
    (tmp_path / "recipe.toml").write_text("", encoding="utf-8")
    with pytest.raises(RecipeError, match="is a run that has not ended: it has no checkpoints/final"):
        train(make_sft(f'model={{path="{tmp_path}"}}'), tmp_path / "a")


def test_a_share_of_the_data_is_drawn_by_the_seed(tmp_path: Path, make_sft: Pipelines) -> None:
    runs = {
        name: train(make_sft("trainer.limit=5", "trainer.evaluate_every=0", f"seed={seed}"), tmp_path / name)
        for name, seed in (("a", 7), ("b", 7), ("c", 8))
    }
    told = {name: run.read_json("demonstrations.json") for name, run in runs.items()}
    assert told["a"]["shown"] == 5
    assert told["a"] == told["b"]
    assert told["a"]["learnt_tokens"] != told["c"]["learnt_tokens"]


def test_the_corpus_own_demonstrations_are_shown_where_it_makes_them(tmp_path: Path, make_sft: Pipelines) -> None:
    own = make_sft("trainer.source=auto", "trainer.limit=9", "trainer.demonstrations={simple=1.0}")
    told = train(own, tmp_path / "a").read_json("demonstrations.json")
    assert (told["source"], told["shown"]) == ("demonstrations", 9)


def test_mixed_precision_keeps_weights_in_full_precision(tmp_path: Path, make_sft: Pipelines) -> None:
    run = train(make_sft("trainer.dtype=bfloat16"), tmp_path)
    weights = load_file(run.checkpoints / "final" / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}


def test_the_reporter_hears_of_every_stage_and_of_what_is_left_out(tmp_path: Path, make_sft: Pipelines) -> None:
    heard: list[Any] = []

    class Listening:
        def start(self, stage: str, total: int, done: int = 0) -> None:
            heard.append([stage, total, done, 0])

        def advance(self, units: int = 1, **figures: float) -> None:
            heard[-1][3] += units

        def say(self, text: str) -> None:
            heard.append(text)

        def finish(self) -> None: ...

    pipeline = make_sft("trainer.max_tokens=50", "trainer.too_long=leave_out")
    run = train(pipeline, tmp_path, Listening())
    told = run.read_json("demonstrations.json")
    assert 0 < told["too_long"] == 20 - told["shown"]
    assert told["longest"] <= 50
    assert heard == [
        ["demonstrations", 20, 0, 20],
        f"{told['too_long']} of 20 demonstrations are too long ('max_tokens') and are left out",
        ["evaluation before", 7, 0, 7],
        ["training", told["steps"], 0, told["steps"]],
        ["evaluation after", 7, 0, 7],
    ]


def test_the_report_of_a_run_shows_the_loss(tmp_path: Path, make_sft: Pipelines) -> None:
    run = train(make_sft(), tmp_path)
    page = write_report(run).read_text(encoding="utf-8")
    assert "Supervised training" in page
    assert "Held-out loss" in page


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.learning_rate=inf", "'learning_rate': Input should be a finite number"),
        ("trainer.learning_rate=nan", "'learning_rate'"),
        ("trainer.learning_rate=0", "'learning_rate'.*greater than 0"),
        ("trainer.clip_norm=inf", "'clip_norm': Input should be a finite number"),
        ("trainer.weight_decay=-1", "'weight_decay'"),
        ("trainer.epochs=0", "'epochs'"),
        ("trainer.epochs=inf", "'epochs': Input should be a finite number"),
        ("trainer.steps=3", "give either 'epochs' or 'steps', not both"),
        ("trainer.warm_up=1.5", "'warm_up' is 1.5; give a whole number of steps, or a share below 1.0"),
        ("trainer.warm_up=inf", "'warm_up'"),
        ("trainer.schedule_floor=1.5", "'schedule_floor'"),
        ("trainer.betas=[0.9, 1.0]", "'betas' are"),
        ("trainer.batch=0", "'batch'"),
        ("trainer.limit=0", "'limit'"),
        ("trainer.lerning_rate=1", "There is no option .* named 'lerning_rate'. Did you mean 'learning_rate'"),
        ("trainer.group=4", "There is no option of the trainer 'sft' named 'group'"),
        ("trainer.demonstrations={simple=1.0}", "source = 'references' shows none"),
    ],
)
def test_bad_options_are_refused_before_anything_is_made(override: str, message: str, make_sft: Pipelines) -> None:
    pipeline = make_sft(override)
    with pytest.raises(RecipeError, match=message) as caught:
        create_trainer(pipeline.recipe, pipeline.registry)
    assert str(caught.value).startswith(("--set trainer", "sft.toml:"))


class _Plain:
    """The small corpus without demonstrations, and with what a test lets it refer to."""

    def __init__(self, corpus: Any) -> None:
        self._corpus = corpus
        self.name, self.environment, self.splits = corpus.name, corpus.environment, corpus.splits
        self.prompt_text, self.vocabulary = corpus.prompt_text, corpus.vocabulary

    def __getitem__(self, split: str) -> Any:
        return self._corpus[split]

    def task(self, task_id: str) -> Any:
        return self._corpus.task(task_id)


class _Refers(_Plain):
    def __init__(self, corpus: Any, what: Callable[[Any], Any]) -> None:
        super().__init__(corpus)
        self._what = what

    def reference(self, task: Any) -> Any:
        return self._what(task)


def test_where_there_is_nothing_to_show_it_says_so(tmp_path: Path, make_sft: Pipelines, small_corpus: Any) -> None:
    with pytest.raises(UsageError, match="makes as many demonstrations as it is asked for; say how many: 'limit'"):
        train(make_sft("trainer.source=auto"), tmp_path / "a")
    with pytest.raises(UsageError, match="makes no demonstrations; use source = 'references'"):
        train(make_sft("trainer.source=demonstrations", corpus=_Plain(small_corpus)), tmp_path / "b")
    options = ("trainer.source=auto", "trainer.demonstrations={simple=1.0}")
    with pytest.raises(UsageError, match="makes no demonstrations, so 'demonstrations' means nothing"):
        train(make_sft(*options, corpus=_Plain(small_corpus)), tmp_path / "c")
    with pytest.raises(UsageError, match="there is nothing to start from"):
        train(make_sft(corpus=_Refers(small_corpus, lambda task: None)), tmp_path / "d")
    with pytest.raises(UsageError, match="all demonstrations are longer than the 5 tokens of 'max_tokens'"):
        train(make_sft("trainer.max_tokens=5", "trainer.too_long=leave_out"), tmp_path / "e")
    with pytest.raises(UsageError, match=r"has \d+ tokens, more than the 16 of the model's positions"):
        train(make_sft("model.tiny={width=16, layers=1, heads=2, ffn=16, positions=16}"), tmp_path / "f")


# Texts and conversations ----------------------------------------------------------------------------------------------


SYSTEM = """You can use tools.
1. Name: weather
Description: Weather of a city.
Parameters: {"city": {"description": "Where.", "type": "str", "default": ""}}
"""
OUTPUTS = [
    '<think> Oslo,  it is.\n</think>\n<tool_call>\n{"name":  "weather", "parameters": {"city": "Oslo"}}\n</tool_call>',
    "<think> Nothing to call. </think>\n<response> Hello. </response>",
    '<think> Odd. </think>\n<tool_call>\n{"parameters": {"city": "Rome"}, "name": "weather"}\n</tool_call>\n',
]


def test_toolrl_rows_are_shown_verbatim_after_their_own_prompt(
    tmp_path: Path, make_policy: Callable[[str], Policy]
) -> None:
    """Thought, spacing and all: what no rendered program would give back."""
    path = tmp_path / "rows.json"
    rows = [{"instruction": SYSTEM, "input": f"<user> {n} </user>", "output": OUTPUTS[n % 3]} for n in range(9)]
    path.write_text(json.dumps(rows), encoding="utf-8")
    modules = (chat_ir, local_trainer, policy_gradient, toolrl_rewards, toolrl_rows)
    registry = load_plugins(entry_points=False, extra={module.__name__: module for module in modules})
    recipe = 'corpus = {name="toolrl-rows", file="x", evaluation="test"}\nir = "toolrl"\nreward = "toolrl"'
    pipeline = build_pipeline(parse_recipe(recipe), registry, corpus=ToolRLRows(path))
    policy = make_policy("llama")
    shown = of_tasks(pipeline, pipeline.tasks("train"))
    encoded = encode(pipeline, policy, shown, Bound(4096, "'max_tokens'"))
    assert [policy.text(example.completion) for example in encoded.examples] == [OUTPUTS[n % 3] for n in range(9)]
    for number, example in enumerate(encoded.examples):
        assert example.tokens == len(example.completion)
        assert example.completion[-1] in policy.ends
        assert policy.text(example.prompt) == f"{SYSTEM.strip()}\n\n<user> {number} </user>\n\n"


def conversation(task: Any) -> Iterable[cw.Message]:
    return [
        cw.Message.assistant(tool_calls=[ToolCall("a", "GetWeather", '{"city": "Rome"}')]),
        cw.Message.tool('{"result": 3}', "a"),
        cw.Message.user("And Oslo?"),
        cw.Message.assistant("It is cold there."),
    ]


def test_conversations_are_learnt_where_the_assistant_speaks(make_sft: Pipelines, small_corpus: Any) -> None:
    pipeline = make_sft(corpus=_Refers(small_corpus, conversation))
    policy = policy_of(pipeline, SupervisedOptions(device="cpu"))
    shown = of_tasks(pipeline, pipeline.tasks("train", 2))
    for example in encode(pipeline, policy, shown, Bound(900, "'max_tokens'")).examples:
        assert example.mask is not None
        ours = [token for token, mine in zip(example.completion, example.mask, strict=True) if mine]
        heard = [token for token, mine in zip(example.completion, example.mask, strict=True) if not mine]
        call, end = (
            pipeline.parser.render(cw.Program((cw.Call(0, "GetWeather", {"city": "Rome"}),))),
            policy.written(policy.completion_ids("")),
        )
        assert policy.written(ours).replace(" ", "") == f"{call}{end}It is cold there.{end}".replace(" ", "")
        assert policy.written(heard) == '\n{"result": 3}\nAnd Oslo?\n'


def weighted(*weights: Any) -> Callable[[cw.Task], list[cw.Message]]:
    """The conversation, with weights of what the assistant says."""

    def shown(task: cw.Task) -> list[cw.Message]:
        given = iter(weights)
        said = conversation(task)
        return [evolve(one, extra={"weight": next(given)}) if one.role == "assistant" else one for one in said]

    return shown


def test_what_has_the_weight_0_is_read_and_not_learnt(make_sft: Pipelines, small_corpus: Any) -> None:
    pipeline = make_sft(corpus=_Refers(small_corpus, weighted(0, 1)))
    policy = policy_of(pipeline, SupervisedOptions(device="cpu"))
    shown = of_tasks(pipeline, pipeline.tasks("train", 2))
    plain = of_tasks(make_sft(corpus=_Refers(small_corpus, conversation)), pipeline.tasks("train", 2))
    bound = Bound(900, "'max_tokens'")
    for example, whole in zip(
        encode(pipeline, policy, shown, bound).examples, encode(pipeline, policy, plain, bound).examples, strict=True
    ):
        assert example.completion == whole.completion
        assert example.mask is not None
        ours = [token for token, mine in zip(example.completion, example.mask, strict=True) if mine]
        end = policy.written(policy.completion_ids(""))
        assert policy.written(ours).replace(" ", "") == f"It is cold there.{end}".replace(" ", "")


@pytest.mark.parametrize(
    ("weights", "message"), [((0, 0), "no message of the assistant with a weight"), ((0.5, 1), "is 0 or 1, not 0.5")]
)
def test_weights_that_are_none_are_refused(
    weights: tuple[Any, ...], message: str, make_sft: Pipelines, small_corpus: Any
) -> None:
    pipeline = make_sft(corpus=_Refers(small_corpus, weighted(*weights)))
    policy = policy_of(pipeline, SupervisedOptions(device="cpu"))
    shown = of_tasks(pipeline, pipeline.tasks("train", 1))
    with pytest.raises(DataError, match=message):
        encode(pipeline, policy, shown, Bound(900, "'max_tokens'"))


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (slice(1, None), "must begin and end with an assistant's"),
        (slice(0, 2), "must begin and end"),
        (slice(0), "must begin"),
    ],
)
def test_conversations_that_do_not_begin_and_end_with_the_assistant_are_refused(
    keep: slice, message: str, make_sft: Pipelines, small_corpus: Any
) -> None:
    pipeline = make_sft(corpus=_Refers(small_corpus, lambda task: list(conversation(task))[keep]))
    policy = policy_of(pipeline, SupervisedOptions(device="cpu"))
    shown = of_tasks(pipeline, pipeline.tasks("train", 2))
    with pytest.raises(DataError, match=message):
        encode(pipeline, policy, shown, Bound(900, "'max_tokens'"))
