"""Recipes as arguments: what is exact, what is listed, what is refused; the grid of rewards; OpenRLHF's log."""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import callwright as cw
from callwright.cli.root import root as root_command
from callwright.commands.app import App
from callwright.errors import RecipeError, UnknownName, UsageError
from callwright.pipeline import create_trainer
from callwright.recipe_file import load_recipe, shipped_recipes
from callwright.training.trainer import Planning, Trainer
from callwright.walk.limits import SINGLE_TURN, TurnLimits
from callwright.walk.tasks import Task
from callwright_plugins.openrlhf_trainer.export import draw
from callwright_plugins.openrlhf_trainer.groups import grid_step, share, steady
from callwright_plugins.openrlhf_trainer.options import LOCAL_ONLY, Options
from callwright_plugins.openrlhf_trainer.trainer import OpenRLHFTrainer
from callwright_plugins.openrlhf_trainer.translation.translating import Files, episode_limits

torch = pytest.importorskip("torch", reason="needs the train extra")

PAPERS = [name for name in shipped_recipes() if load_recipe(name).recipe.trainer.name == "openrlhf"]


def translated(text: str, make_pipeline: Any, **options: Any) -> Any:
    given = {"prompts": 4, "group": 4, **options}
    return OpenRLHFTrainer(**given)._translate(make_pipeline(text), Files(Path("RUN")))


def text_of(algorithm: str, *more: str) -> str:
    return "\n".join(['model = "m"', 'corpus = "toolworld-mini-v1"', *more, f"[algorithm]\n{algorithm}"])


def value_of(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


@pytest.mark.parametrize(("seed", "told"), [(7, "7"), (-1, str(2**31 - 1)), (2**40 + 5, "5")])
def test_any_seed_of_a_recipe_is_one_that_numpy_takes(make_pipeline: Any, seed: int, told: str) -> None:
    assert value_of(translated(text_of('name = "grpo"', f"seed = {seed}"), make_pipeline).argv, "--train.seed") == told


@pytest.mark.parametrize("name", PAPERS)
def test_shipped_recipes_are_accepted(name: str, openrlhf_registry: cw.Registry) -> None:
    trainer = create_trainer(load_recipe(name), openrlhf_registry)
    assert isinstance(trainer, Trainer)
    assert isinstance(trainer, Planning)
    assert set(trainer.local) <= {"evaluation_batch"}  # Tables 8 and 9 of ToolRL have one


@pytest.mark.parametrize(
    "algorithm",
    [
        'name = "grpo"\nstd_epsilon = 1e-9\nkl_weight = 0.0',
        'name = "rloo"\nratio = "token"\nkl_weight = 0.0',
        'name = "reinforce++"',
        'name = "reinforce++-baseline"',
        'name = "ppo"\nunbiased_std = false',
    ],
)
def test_some_recipes_are_exact(algorithm: str, make_pipeline: Any) -> None:
    found = translated(text_of(algorithm), make_pipeline)
    assert found.exact, [*found.approximated, *found.unsupported]


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ('name = "bn-grpo"\nstd_epsilon = 1e-9', "algorithm.name"),
        ('name = "grpo"\nkl_weight = 0.0', "algorithm.std_epsilon"),
        ('name = "grpo"\nstd_epsilon = 1e-9', "algorithm.kl_weight"),
        ('name = "grpo"\nstd_epsilon = 1e-9\nkl_weight = 0.0\nentropy_weight = 0.1', "algorithm.entropy_weight"),
        ('name = "grpo"\nstd_epsilon = 1e-9\nkl_weight = 0.0\nstd = "batch"', "algorithm.std"),
        ('name = "grpo"\nstd_epsilon = 1e-9\nkl_weight = 0.0\nstd = "population"', "algorithm.std"),
        ('name = "grpo"\nstd_epsilon = 1e-9\nkl_weight = 0.0\nratio = "response"', "algorithm.ratio"),
        ('name = "grpo"\nstd_epsilon = 1e-9\nkl_in = "reward"', "algorithm.kl_in"),
        ('name = "dapo"\nstd_epsilon = 1e-9', "trainer.steps"),
        ('name = "dr-grpo"', "algorithm.max_length"),
        ('name = "rloo"\nkl_weight = 0.0', "algorithm.ratio"),
        ('name = "rloo"\nratio = "token"', "algorithm.kl_weight"),
        ('name = "ppo"', "algorithm.unbiased_std"),
        ('name = "ppo"\nunbiased_std = false\nkl_target = 0.1', "algorithm.kl_target"),
        ('name = "ppo"\nwhiten = false', "algorithm.whiten"),
        ('name = "reinforce++-baseline"\ngamma = 0.9', "algorithm.gamma"),
    ],
)
def test_differences_of_algorithms_are_listed(algorithm: str, key: str, make_pipeline: Any) -> None:
    found = translated(text_of(algorithm), make_pipeline)
    assert [one.key for one in (*found.approximated, *found.unsupported)] == [key]


@pytest.mark.parametrize("name", ["grpo", "bn-grpo", "dapo", "dr-grpo"])
def test_a_divergence_before_the_group_is_refused(name: str, make_pipeline: Any) -> None:
    """OpenRLHF takes it off afterwards, where it is no advantage of unit size in a group of equal rewards."""
    text = text_of(f'name = "{name}"\nkl_weight = 0.001\nkl_in = "reward"')
    (one,) = translated(text, make_pipeline).unsupported
    assert (one.key, one.wanted, one.refused) == ("algorithm.kl_in", "reward", True)
    free = text_of(f'name = "{name}"\nkl_weight = 0.0\nkl_in = "reward"')
    assert translated(free, make_pipeline).unsupported == ()


def test_what_stands_in_the_loss_keeps_its_estimator(make_pipeline: Any) -> None:
    found = translated(text_of('name = "grpo"\nkl_estimator = "k2"'), make_pipeline)
    assert value_of(found.argv, "--algo.kl.estimator") == "k2"
    assert "--algo.kl.use_loss" in found.argv
    assert value_of(translated(text_of('name = "grpo"'), make_pipeline).argv, "--algo.kl.estimator") == "k3"


def test_ratios_of_responses_become_the_loss_that_is_nearest(make_pipeline: Any) -> None:
    whole = translated(text_of('name = "grpo"\nratio = "response"\nkl_weight = 0.0'), make_pipeline)
    assert value_of(whole.argv, "--actor.loss_agg_mode") == "token-mean"
    found = translated(text_of('name = "grpo"\nkl_weight = 0.0\nstd = "population"'), make_pipeline, group=4)
    assert value_of(found.argv, "--actor.loss_agg_mode") == "seq-mean-token-mean"
    (why,) = [one.why for one in found.approximated if one.key == "algorithm.std"]
    assert "0.866025 times as large" in why  # sqrt(3 / 4)


def test_a_schedule_ends_where_it_should(make_pipeline: Any) -> None:
    algorithm = 'name = "reinforce++"'
    for floor in (0.0, 0.1):
        found = translated(text_of(algorithm), make_pipeline, schedule="cosine", schedule_floor=floor)
        assert value_of(found.argv, "--actor.min_lr_ratio") == str(floor)
        assert found.exact
    assert translated(text_of(algorithm), make_pipeline, schedule="linear", schedule_floor=0.0).exact


def test_every_key_of_the_trainer_local_is_kept_or_listed() -> None:
    from callwright_plugins.local_trainer.options import Options as LocalOptions

    assert LocalOptions.model_fields.keys() <= Options.model_fields.keys() | LOCAL_ONLY.keys()
    assert not Options.model_fields.keys() & LOCAL_ONLY.keys()


def test_what_cannot_be_told_is_refused_before_anything_is_made(openrlhf_registry: cw.Registry) -> None:
    words = ["tier-cpu", "--set", "trainer=openrlhf", "--set", "algorithm.kl_in=reward", "--dry-run"]
    done = run_dry(openrlhf_registry, *words)
    assert done.exit_code == 2
    assert "model.tiny = {" in done.stderr
    assert "algorithm.kl_in = 'reward': OpenRLHF takes the divergence off after" in done.stderr
    assert "tier-cpu.toml:" in done.stderr


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"lora": {"rank": 4, "alpha": 8, "targets": ["q_proj", "v_proj"]}, "zero_stage": 2},
         "--ds.lora.rank 4 --ds.lora.alpha 8 --ds.lora.target_modules q_proj v_proj"),
        ({"context_parallel": 2, "packing": True, "gpus_per_node": 2},
         "--ds.ring_attn_size 2 --ds.ring_attn_head_stride 1"),
        ({"colocate": False, "reference": {"nodes": 1, "gpus_per_node": 3}},
         "--ref.num_nodes 1 --ref.num_gpus_per_node 3"),
        ({"colocate": False, "reference": {"with_policy": True, "offload": True}},
         "--train.colocate_actor_ref --ref.offload"),
        ({"optimizer_offload": True}, "--ds.adam_offload"),
        ({"colocate": False, "asynchronous": {"queue": 2, "partial_rollouts": True, "correction": "sequence-mask"}},
         "--train.async_enable --train.async_queue_size 2 --train.partial_rollout_enable "
         "--algo.advantage.is_correction_level seq --algo.advantage.is_correction_mode mask "
         "--algo.advantage.is_correction_threshold 0.5 5.0"),
    ],
)  # fmt: skip
def test_options_of_clusters_are_flags(options: dict[str, Any], flags: str, make_pipeline: Any) -> None:
    found = translated(text_of('name = "reinforce++"'), make_pipeline, **options)
    assert f" {flags} " in f" {' '.join(found.argv)} "


def test_engines_do_not_sleep_beside_asynchronous_training(make_pipeline: Any) -> None:
    found = translated(text_of('name = "reinforce++"'), make_pipeline, asynchronous={})
    assert "--vllm.enable_sleep" not in found.argv
    # OpenRLHF's sampler, which evaluates too, ends a queue's length before training does.
    assert [one.key for one in found.approximated] == ["trainer.evaluate_every", "trainer.asynchronous"]


def test_a_critic_may_have_gpus_of_its_own(make_pipeline: Any) -> None:
    options = {"colocate": False, "critic": {"nodes": 2, "gpus_per_node": 4}}
    found = translated(text_of('name = "ppo"'), make_pipeline, **options)
    assert value_of(found.argv, "--critic.num_nodes") == "2"
    assert value_of(found.argv, "--critic.num_gpus_per_node") == "4"


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"mini_batches": 2}, "trainer.mini_batches"),
        ({"warm_up": 3}, "trainer.warm_up"),
        ({"weight_decay": 0.1}, "trainer.weight_decay"),
        ({"schedule": "linear"}, "trainer.schedule_floor"),
        ({"dtype": "float32"}, "trainer.dtype"),
        ({"depths": [1]}, "trainer.depths"),
        ({"evaluate_every": 3}, "trainer.evaluate_every"),
        *(({name: 1}, f"trainer.{name}") for name in sorted(LOCAL_ONLY)),
    ],
)
def test_differences_of_options_are_listed(options: dict[str, Any], key: str, make_pipeline: Any) -> None:
    found = translated(text_of('name = "reinforce++"'), make_pipeline, **options)
    assert [one.key for one in (*found.approximated, *found.unsupported)] == [key]
    assert all(one.why for one in (*found.approximated, *found.unsupported))


def test_a_reward_function_knows_no_groups(make_pipeline: Any) -> None:
    text = text_of('name = "dapo"\nstd_epsilon = 1e-9\noverlong_buffer = 0')
    found = translated(text, make_pipeline, rewards="function")
    assert [one.key for one in found.approximated] == ["trainer.steps", "algorithm.dynamic_sampling"]
    assert "--reward.remote_url" in found.argv
    assert "--reward.overlong_buffer_len" not in found.argv


def test_a_scheduled_reward_is_listed(make_pipeline: Any, openrlhf_registry: cw.Registry) -> None:
    names = []
    for name in openrlhf_registry.names("reward recipe"):
        with suppress(cw.UsageError):  # a judge's wants to know its model
            if getattr(openrlhf_registry.create("reward recipe", name), "scheduled", False):
                names.append(name)
    assert names
    found = translated(text_of('name = "reinforce++"', f'reward = "{names[0]}"'), make_pipeline)
    assert [one.key for one in found.approximated] == ["reward"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stepz": 1}, "no option of the trainer 'openrlhf' named 'stepz'. Did you mean 'steps'"),
        ({"steps": 0}, "'steps'"),
        ({"critic": {"rate": 1}}, "named 'rate'"),
        ({"prompts": 3, "group": 3, "mini_batches": 2}, "mini_batches is 2, which does not divide 9 completions"),
        ({"gpus_per_node": 3}, "which 3 GPUs cannot share in micro batches of 1"),
        ({"gpus_per_node": 4, "engines": 1}, "to be the 4 GPUs of the policy, not 1 times 1"),
        ({"context_parallel": 2, "gpus_per_node": 2}, "add packing = true"),
        ({"context_parallel": 2, "packing": True}, "which does not divide 1 GPUs"),
        ({"context_parallel": 1, "reference": {"nodes": 1}}, "for the reference need colocate = false"),
        ({"critic": {"gpus_per_node": 1}}, "for the critic need colocate = false"),
        ({"colocate": False, "reference": {"nodes": 1, "with_policy": True}}, "either with_policy or on nodes"),
        ({"lora": {}}, "give zero_stage = 2"),
        ({"asynchronous": {"correction_range": [2.0, 1.0]}}, "a least ratio and a larger one"),
        ({"ray_address": "a:1", "job_address": "http://a:2"}, "leave ray_address out"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)) as caught:
        OpenRLHFTrainer(**options)
    assert isinstance(caught.value, UnknownName) == ("named" in said)


def test_a_tiny_model_and_an_unknown_algorithm(make_pipeline: Any) -> None:
    text = 'corpus = "toolworld-mini-v1"\nalgorithm = "reinforce++"\n[model.tiny]\nwidth = 16'
    found = translated(text, make_pipeline)
    assert [(one.key, one.refused) for one in found.unsupported] == [("model.tiny", True)]
    pipeline = make_pipeline(text_of('name = "reinforce++"'))
    from attrs import evolve

    class Other:
        name = "other"

    with pytest.raises(RecipeError, match=r"no counterpart of the algorithm 'other'\. Known: bn-grpo, dapo"):
        OpenRLHFTrainer()._translate(evolve(pipeline, algorithm=Other()), Files(Path("RUN")))


@given(st.integers(0, 300), st.integers(1, 300), st.integers(1, 4), st.integers(1, 3))
def test_the_warm_up_has_as_many_updates_as_it_should(warm_up: int, steps: int, parts: int, passes: int) -> None:
    import math

    from callwright_plugins.openrlhf_trainer.translation.algorithms import warm_up_ratio

    options = Options(steps=steps, prompts=12, group=1, mini_batches=parts, iterations=passes)
    updates = steps * parts * passes
    assert math.ceil(updates * warm_up_ratio(warm_up, options)) == min(updates, warm_up * parts * passes)


def memory(make_pipeline: Any, algorithm: str = 'name = "ppo"', **options: Any) -> dict[str, float]:
    pipeline = make_pipeline(text_of(algorithm).replace('"m"', '"Qwen/Qwen3-8B"'))
    told = OpenRLHFTrainer(**{"prompts": 8, "group": 8, **options}).dry_run(pipeline)
    return {row["key"]: row["GiB"] for row in told["memory"]}


def test_a_plan_of_memory_divides_what_deepspeed_divides(make_pipeline: Any) -> None:
    grpo = 'name = "grpo"\nkl_weight = 0.0'
    one, two = (memory(make_pipeline, grpo, gpus_per_node=count) for count in (1, 2))
    for key in ("weights", "gradients", "optimizer"):
        assert two[key] == pytest.approx(one[key] / 2, abs=0.01)
    assert "reference" not in one
    half = memory(make_pipeline, grpo, gpus_per_node=2, zero_stage=1)
    assert (half["weights"], half["gradients"]) == (one["weights"], one["gradients"])
    assert half["optimizer"] == two["optimizer"]
    assert memory(make_pipeline, grpo, optimizer_offload=True)["optimizer"] == 0.0
    lora = memory(make_pipeline, grpo, lora={}, zero_stage=2)
    assert lora["gradients"] < 0.1 < lora["weights"]
    ring = memory(make_pipeline, grpo, gpus_per_node=2, context_parallel=2, packing=True)
    assert ring["logits"] == pytest.approx(two["logits"] / 2, abs=0.01)


def test_a_plan_of_memory_knows_who_is_on_which_gpu(make_pipeline: Any) -> None:
    together = memory(make_pipeline)
    assert together["critic: weights"] == together["reference"] == together["weights"]
    assert together["critic: optimizer"] == 0.0  # asleep while it is the policy's turn
    assert together["keys and values"] + together["vllm weights"] == pytest.approx(0.6 * 80, abs=0.02)
    apart = memory(make_pipeline, colocate=False)
    assert not {"critic: weights", "reference", "keys and values"} & apart.keys()
    assert "reference" in memory(make_pipeline, colocate=False, reference={"with_policy": True})


def test_limits_of_an_episode() -> None:
    options = Options(max_prompt_tokens=100, max_new_tokens=50)
    assert episode_limits(SINGLE_TURN, options) == TurnLimits(1, 1, turn_tokens=50, context_tokens=150)
    several = TurnLimits(4, 2, total_tokens=120, observation_tokens=9)
    assert episode_limits(several, options) == TurnLimits(4, 2, 50, 120, 9, 220)
    assert episode_limits(TurnLimits(4, context_tokens=90), options).context_tokens == 90


# Rewards on the grid --------------------------------------------------------------------------------------------------


@given(st.integers(2, 64), st.floats(-3, 4))
def test_groups_of_equal_rewards_have_exactly_their_own_mean(group: int, reward: float) -> None:
    given = steady(reward, grid_step(group, 4.0))
    rewards = torch.full((1, group), given)
    assert float((rewards - rewards.mean(-1, keepdim=True)).abs().max()) == 0.0
    assert float(torch.tensor(given)) == given  # exact in single precision
    assert abs(given - reward) <= 0.5e-6 + grid_step(group, 4.0) / 2


@given(st.floats(0, 1))
def test_noise_of_arithmetic_is_gone(reward: float) -> None:
    step = grid_step(8, 1.0)
    rounded = round(reward, 6)
    assert steady(rounded + 1e-8, step) == steady(rounded - 1e-8, step) == steady(rounded, step)
    assert 0.0 <= share(steady(reward, step), 0.0, 1.0) <= 1.0


# Exported tasks -------------------------------------------------------------------------------------------------------


def tasks_of(depths: list[int]) -> list[Any]:
    return [Task(str(place), "", {}, cw.Answer(()), None, depth=depth) for place, depth in enumerate(depths)]  # type: ignore[arg-type]


@given(st.integers(1, 9), st.integers(0, 40), st.integers(0, 3))
def test_every_task_comes_before_any_comes_again(tasks: int, count: int, seed: int) -> None:
    drawn = [task.id for task in draw(tasks_of([0] * tasks), None, count, seed)]
    assert len(drawn) == count
    counts = Counter(drawn)
    assert max(counts.values(), default=0) - min(counts.values(), default=0) <= 1 or len(counts) < tasks
    assert drawn == [task.id for task in draw(tasks_of([0] * tasks), None, count, seed)]


def test_listed_depths_come_as_often_as_they_are_listed() -> None:
    drawn = Counter(task.depth for task in draw(tasks_of([0, 1, 1, 2]), [1, 2, 2], 30, 0))
    assert drawn == {1: 10, 2: 20}
    with pytest.raises(UsageError, match="asks for depth 7, but the exported tasks only have 0, 1, 2"):
        draw(tasks_of([0, 1, 2]), [7], 3, 0)


# The command line -----------------------------------------------------------------------------------------------------


def run_dry(registry: cw.Registry, *words: str) -> Any:
    return CliRunner().invoke(root_command, ["run", *words], obj=App(registry=registry), catch_exceptions=True)


def test_a_dry_run_prints_arguments_and_lists(
    openrlhf_registry: cw.Registry, stand_in: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLWRIGHT_OPENRLHF_PYTHON", stand_in)
    monkeypatch.chdir(tmp_path)
    done = run_dry(openrlhf_registry, "tier-cpu", "--set", "trainer=openrlhf", "--set", "model=Qwen/Qwen3-8B",
                   "--dry-run", "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert list(found) == ["argv", "approximated", "unsupported", "defaults", "memory", "files"]
    assert value_of(found["argv"], "--actor.model_name_or_path") == "Qwen/Qwen3-8B"
    assert {tuple(one) for one in found["approximated"]} == {("key", "wanted", "given", "why")}
    # The table of the trainer local is kept: what has no counterpart is listed, and nothing of it is a default.
    assert [one["key"] for one in found["unsupported"]] == ["trainer.warm_start"]
    assert value_of(found["argv"], "--actor.adam.lr") == "0.0003"
    assert "learning_rate" not in found["defaults"]
    assert any(one["path"].endswith("train.jsonl") for one in found["files"])
    assert list(tmp_path.iterdir()) == []
    shown = run_dry(openrlhf_registry, "tier-cpu", "--set", "trainer.name=openrlhf", "--set", "model=m", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("argv: --actor.model_name_or_path m ")
    assert "\n  trainer.warm_start: wanted " in shown.stdout
    strict = run_dry(openrlhf_registry, "tier-cpu", "--set", "trainer=openrlhf", "--set", "model=m", "--strict")
    assert strict.exit_code == 2
    assert "strict: OpenRLHF cannot do exactly what the recipe says" in strict.stderr
    keys = re.search(r"--strict-except (\S+) lets it pass", strict.stderr)
    assert keys is not None
    allowed = ["--strict-except", keys[1], "--dry-run"]
    passed = run_dry(openrlhf_registry, "tier-cpu", "--set", "trainer=openrlhf", "--set", "model=m", *allowed)
    assert passed.exit_code == 0
    assert list(tmp_path.iterdir()) == []
    local = run_dry(openrlhf_registry, "tier-cpu", "--strict", "--dry-run")
    assert local.exit_code == 2
    assert "it has no --strict" in local.stderr


# The page -------------------------------------------------------------------------------------------------------------


def test_the_page_lists_every_difference(root: Path) -> None:
    """Each key that can be listed has a row in the page's table, and each row is one that can."""
    sources = root / "plugins/callwright_plugins/openrlhf_trainer"
    code = "".join((sources / name).read_text() for name in ("translation/algorithms.py", "translation/translating.py"))
    listed = set(re.findall(r'"((?:algorithm|trainer|model)\.[a-z_]+|reward)"', code))
    listed |= {"algorithm.kl_weight", "algorithm.entropy_weight", *(f"trainer.{name}" for name in LOCAL_ONLY)}
    page = (root / "docs/openrlhf.md").read_text().partition("## What is approximated")[2]
    rows = set(re.findall(r"^\| `([a-z_.]+)` \|", page, flags=re.MULTILINE))
    assert rows == listed
