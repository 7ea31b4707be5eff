"""What OpenRLHF itself says of this trainer: a program for an interpreter that has OpenRLHF, Ray and DeepSpeed.

    OPENRLHF_PYTHON openrlhf_checks.py FOLDER

Runs OpenRLHF 0.11.2's own code on the CPU and prints one JSON object of measurements, which the tests compare with what
they must be. Two packages that OpenRLHF imports need a GPU to be installed. Where they are absent, stand-ins take their
names, and say so in ``stubs``: ``flash_attn``, of which nothing may be called, and three names of ``vllm``.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import sys
import time
import types
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

TEMPLATE = (
    "{% for m in messages %}<|begin|>{{ m['role'] }}\n{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|begin|>assistant\n{% endif %}"
)
GROUP = 4
CORPUS = """
name = "check"
seed = 3
[corpus]
name = "toolworld-mini-v1"
train_size = 12
evaluation_size = 1
"""


# Stand-ins for what cannot be installed without a GPU -----------------------------------------------------------------


def install_stubs() -> list[str]:
    """Give absent packages' names something to be imported; the names of those that were given."""
    made = []
    if importlib.util.find_spec("flash_attn") is None:
        made.append("flash_attn")

        def absent(*_: Any, **__: Any) -> Any:
            raise RuntimeError("flash_attn is a stand-in here, and nothing may call it")

        package = _module("flash_attn")
        package.__path__ = []
        padding = _module("flash_attn.bert_padding")
        for name in ("index_first_axis", "pad_input", "rearrange", "unpad_input"):
            setattr(padding, name, absent)
        utils = _module("flash_attn.utils")
        utils.__path__ = []
        _module("flash_attn.utils.distributed").all_gather = absent
    if importlib.util.find_spec("vllm") is None:
        made.append("vllm")

        class SamplingParams(SimpleNamespace):
            """The parameters as they were given."""

        package = _module("vllm")
        package.__path__ = []
        package.__version__ = "0.29.0"
        package.SamplingParams = SamplingParams
        _module("vllm.inputs").TokensPrompt = dict
        _module("vllm.utils").random_uuid = lambda: "0"
    return made


def _module(name: str) -> Any:
    module = types.ModuleType(name)
    module.__spec__ = importlib.util.spec_from_loader(name, None)
    sys.modules[name] = module
    return module


STUBS = install_stubs()

import torch  # noqa: E402
from attrs import evolve  # noqa: E402
from openrlhf.models import PolicyLoss, ValueLoss, aggregate_loss  # noqa: E402
from openrlhf.models.actor import Actor  # noqa: E402
from openrlhf.models.utils import compute_approx_kl  # noqa: E402
from openrlhf.trainer.ppo_utils.experience import Experience  # noqa: E402
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker  # noqa: E402
from openrlhf.trainer.ppo_utils.length_penalty import apply_overlong_penalty  # noqa: E402
from openrlhf.trainer.ppo_utils.samples_generator import SamplesGenerator  # noqa: E402
from openrlhf.trainer.ray import ppo_actor, vllm_engine  # noqa: E402
from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor, SingleTurnAgentExecutor  # noqa: E402
from vllm import SamplingParams  # noqa: E402

from callwright.episodes.driving import drive_batch  # noqa: E402
from callwright.episodes.token_episode import EngineOutput  # noqa: E402
from callwright.errors import InfrastructureFailure  # noqa: E402
from callwright.language.program import Program  # noqa: E402
from callwright.pipeline import build_pipeline, conditions_of  # noqa: E402
from callwright.plugins import default_registry  # noqa: E402
from callwright.recipe_file import load_recipe, parse_recipe, shipped_recipes  # noqa: E402
from callwright.training.algorithm import Experience as Batch  # noqa: E402
from callwright.training.algorithm import TokenBatch, ValueBatch  # noqa: E402
from callwright.training.reporter import SILENT  # noqa: E402
from callwright.training.run_folder import Run  # noqa: E402
from callwright.walk.limits import TurnLimits  # noqa: E402
from callwright.walk.sampling import Completion  # noqa: E402
from callwright_plugins.local_trainer.forward.generation import Sampled  # noqa: E402
from callwright_plugins.local_trainer.models.policy import load_policy  # noqa: E402
from callwright_plugins.local_trainer.options import Options as LocalOptions  # noqa: E402
from callwright_plugins.local_trainer.sampling import episodes  # noqa: E402
from callwright_plugins.openrlhf_trainer.configuration import read_configuration  # noqa: E402
from callwright_plugins.openrlhf_trainer.groups import grid_step, steady  # noqa: E402
from callwright_plugins.openrlhf_trainer.trainer import OpenRLHFTrainer  # noqa: E402
from callwright_plugins.openrlhf_trainer.translation.parser_check import parse  # noqa: E402
from callwright_plugins.openrlhf_trainer.translation.translating import Files  # noqa: E402

# Models and run folders -----------------------------------------------------------------------------------------------


def make_model(folder: Path, kind: str) -> Path:
    """A random model of 2 layers with the vocabulary of the small world and a chat template."""
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    tokenizer = make_tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    size: dict[str, Any] = {
        "vocab_size": len(tokenizer), "hidden_size": 32, "intermediate_size": 64,
        "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "max_position_embeddings": 4096, "eos_token_id": tokenizer.eos_token_id,
        "bos_token_id": tokenizer.bos_token_id, "pad_token_id": tokenizer.pad_token_id,
    }  # fmt: skip
    if kind == "qwen3":
        model: Any = Qwen3ForCausalLM(Qwen3Config(**size, head_dim=16))
    else:
        model = LlamaForCausalLM(LlamaConfig(**size))
    model.save_pretrained(folder)
    return folder


def make_tokenizer() -> Any:
    """Byte-level BPE, trained on prompts of the small world, with a chat template."""
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    pipeline = build_pipeline(parse_recipe(CORPUS), default_registry())
    texts = [message.text for task in pipeline.tasks("train") for message in pipeline.messages(task)]
    texts += [pipeline.parser.render(task.program) for task in pipeline.tasks("train") if task.program]
    bpe = ByteLevelBPETokenizer()
    specials = ["<|begin|>", "<|end|>", "<|pad|>"]
    bpe.train_from_iterator(texts, vocab_size=700, special_tokens=specials, show_progress=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe._tokenizer, bos_token="<|begin|>", eos_token="<|end|>", pad_token="<|pad|>",
        chat_template=TEMPLATE,
    )  # fmt: skip


def make_run(
    folder: Path, model: Path, *, turns: bool, algorithm: str = "bn-grpo", turn_tokens: int = 300, **options: Any
) -> tuple[Any, Any, Files]:
    """A run folder as the trainer writes it before it starts OpenRLHF."""
    text = f'algorithm = "{algorithm}"\nmodel = "{model}"\ntrainer = "openrlhf"\n{CORPUS}'
    if turns:
        text += f"[turns]\nassistant_turns = 4\nturn_tokens = {turn_tokens}\n"
        text += "total_tokens = 1200\nobservation_tokens = 600\n"
    given = {"steps": 3, "prompts": 2, "group": GROUP, "max_prompt_tokens": 3000, "max_new_tokens": 300, **options}
    trainer = OpenRLHFTrainer(python=sys.executable, evaluation_tasks=1, **given)
    pipeline = build_pipeline(parse_recipe(text), default_registry())
    run = Run.create(folder, recipe_text=text, manifest={})
    files = Files(run.path.resolve())
    trainer._write(pipeline, files, trainer._translate(pipeline, files), sys.executable, SILENT)
    return pipeline, trainer, files


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of an exported file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


# Engines --------------------------------------------------------------------------------------------------------------


class Engine:
    """OpenRLHF's engine in this process: a model that samples, or completions from a script, with log-probabilities."""

    def __init__(self, model: Any, tokenizer: Any, script: Any = None) -> None:
        self.model, self.tokenizer, self.script = model, tokenizer, script
        self.generator = torch.Generator().manual_seed(5)
        self.asked: list[tuple[int, int]] = []

    async def generate(self, ids: list[int], params: Any, multi_modal_data: Any = None) -> Any:
        await asyncio.sleep(0)
        self.asked.append((len(ids), params.max_tokens))
        if self.script is None:
            new, logprobs = self._sample(ids, params)
        else:
            new = list(self.script(tuple(ids)))[: params.max_tokens]
            logprobs = self._logprobs(ids, new)
        ends = {self.tokenizer.eos_token_id}
        stopped = bool(new) and new[-1] in ends
        shown = new[:-1] if stopped else new
        output = SimpleNamespace(
            token_ids=new,
            text=self.tokenizer.decode(shown, skip_special_tokens=False, clean_up_tokenization_spaces=False),
            finish_reason="stop" if stopped else "length",
            logprobs=[{token: SimpleNamespace(logprob=value)} for token, value in zip(new, logprobs, strict=True)],
        )
        return SimpleNamespace(outputs=[output])

    @torch.no_grad()
    def _sample(self, ids: list[int], params: Any) -> tuple[list[int], list[float]]:
        new: list[int] = []
        logprobs: list[float] = []
        cache, following = None, ids
        while len(new) < params.max_tokens:
            output = self.model(torch.tensor([following]), past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            distribution = (output.logits[0, -1].float() / params.temperature).log_softmax(-1)
            token = int(torch.multinomial(distribution.exp(), 1, generator=self.generator))
            new.append(token)
            following = [token]
            logprobs.append(float(distribution[token]))
            if token == self.tokenizer.eos_token_id:
                break
        return new, logprobs

    @torch.no_grad()
    def _logprobs(self, ids: list[int], new: list[int]) -> list[float]:
        if not new:
            return []
        logits = self.model(torch.tensor([[*ids, *new]])).logits[0, len(ids) - 1 : -1].float()
        return logits.log_softmax(-1).gather(1, torch.tensor(new).unsqueeze(1)).squeeze(1).tolist()


def parameters(**more: Any) -> Any:
    """Sampling parameters as OpenRLHF makes them."""
    given = {
        "temperature": 1.0,
        "top_p": 1.0,
        "top_k": -1,
        "max_tokens": 300,
        "min_tokens": 1,
        "skip_special_tokens": False,
        "logprobs": 1,
    }
    return SamplingParams(**{**given, **more})


def experience_of(response: dict[str, Any], max_len: int) -> Experience:
    """A response as OpenRLHF's sampler takes it."""
    return SamplesGenerator._process_response_into_experience(SimpleNamespace(), response, max_len=max_len)


def loaded_model(folder: Path) -> tuple[Any, Any]:
    """Model and tokenizer, as OpenRLHF loads the latter."""
    from openrlhf.utils import get_tokenizer
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, get_tokenizer(str(folder), model, "left", None)


def scripted(pipeline: Any, tokenizer: Any, task: Any, prompt: int) -> Any:
    """A script: the reference program in the first turn, then the answer without calls."""
    texts = [pipeline.parser.render(task.program), pipeline.parser.render(Program())]
    ids = [[*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id] for text in texts]
    return lambda context: ids[0] if len(context) == prompt else ids[1]


# 1. Command lines -----------------------------------------------------------------------------------------------------


def check_arguments(folder: Path) -> dict[str, Any]:
    """Every shipped recipe through OpenRLHF's parser: what it made of some options."""
    registry = default_registry()
    found: dict[str, Any] = {}
    for name in sorted(shipped_recipes()):
        loaded = load_recipe(name)
        if loaded.recipe.trainer.name == "local":
            loaded = load_recipe(name, ["trainer.name=openrlhf", "model=some/model"])
        recipe = loaded.recipe
        pipeline: Any = SimpleNamespace(
            recipe=loaded,
            algorithm=registry.create("algorithm", recipe.algorithm.name, **recipe.algorithm.options),
            reward=registry.create("reward recipe", recipe.reward.name, **recipe.reward.options),
            conditions=conditions_of(loaded),
        )
        translated = OpenRLHFTrainer(**recipe.trainer.options)._translate(pipeline, Files(folder / "RUN"))
        try:
            with contextlib.redirect_stdout(sys.stderr):
                values = parse(translated.argv)
        except (SystemExit, Exception) as error:
            found[name] = {"error": repr(error)}
            continue
        found[name] = {
            "words": len(translated.argv),
            "approximated": [one.key for one in translated.approximated],
            "unsupported": [one.key for one in translated.unsupported],
            "values": json.loads(json.dumps(values, default=vars)),
        }
    return found


# 2. Executors ---------------------------------------------------------------------------------------------------------


def check_executors(folder: Path, kind: str) -> dict[str, Any]:
    """Our executor, loaded by OpenRLHF from the generated file, against the core, the local trainer and
    OpenRLHF's own."""
    directory = make_model(folder / f"model-{kind}", kind)
    model, tokenizer = loaded_model(directory)
    pipeline, _, files = make_run(folder / f"run-{kind}", directory, turns=True)
    executor = vllm_engine._load_agent_executor(str(files.entry))
    found: dict[str, Any] = {"episodes": 0, "turns": 0, "tokens": 0, "cut": 0, "logprob_error": 0.0, "differences": []}
    exported = rows_of(files.train)
    policy = load_policy(directory, device=torch.device("cpu"))
    limits = read_configuration(files.config).limits
    max_len = limits.context_tokens or 0
    for row in exported:
        task = pipeline.corpus.task(json.loads(row["label"])["task"])
        row["label"] = json.dumps({**json.loads(row["label"]), "copies": 1})
        prompt = tokenizer(text=row["prompt"], add_special_tokens=False)["input_ids"]
        script = scripted(pipeline, tokenizer, task, len(prompt))
        engine = Engine(model, tokenizer, script)
        given = {
            "prompt": row["prompt"],
            "label": row["label"],
            "max_length": max_len,
            "hf_tokenizer": tokenizer,
            "llm_engine": engine,
        }
        ours = asyncio.run(executor.execute(sampling_params=parameters(), **given))
        # the core's own driver
        core = pipeline.token_episode(task, policy.codec(), conditions=evolve(pipeline.conditions, limits=limits))
        drive_batch(
            [core], lambda contexts, rooms, script=script: [EngineOutput(tuple(script(one))) for one in contexts]
        )
        # the local trainer, whose sampling is replaced by the script
        local = local_episode(pipeline, policy, task, script, limits)
        # OpenRLHF's own executor, which tokenises texts
        stock = asyncio.run(
            MultiTurnAgentExecutor(stock_instance(pipeline, policy, task)).execute(
                sampling_params=parameters(), **{**given, "llm_engine": Engine(model, tokenizer, script)}
            )
        )
        experience = experience_of(ours, max_len)
        mask = [0] * len(core.prompt_ids) + list(core.mask)
        start = len(core.prompt_ids)
        same = {
            "prompt": list(core.prompt_ids) == prompt,
            "ids of the core": ours["observation_tokens"] == list(core.context),
            "ranges of the core": ours["action_ranges"] == [(start + a, start + b) for a, b in core.ranges],
            "ids of the local trainer": list(local.sampled.ids) == list(core.response_ids),
            "mask of the local trainer": list(local.sampled.mask) == list(core.mask),
            "mask of OpenRLHF's experience": experience.action_mask[0].tolist() == mask[1:],
            "ids of OpenRLHF's experience": experience.sequences[0].tolist() == list(core.context),
            "ids of the stock executor": stock["observation_tokens"] == ours["observation_tokens"],
            "ranges of the stock executor": stock["action_ranges"] == ours["action_ranges"],
            "log-probabilities of the stock executor": stock["rollout_log_probs"] == ours["rollout_log_probs"],
            "reward": abs(ours["reward"] - pipeline.score(core.attempt).total) <= 1e-6,
            "reward of the local trainer": abs(ours["reward"] - local.reward.total) <= 1e-6,
        }
        if core.observations_cut:  # the stock executor has no such limit
            found["cut"] += 1
            same = {name: equal for name, equal in same.items() if "stock" not in name}
        found["differences"] += [f"{task.id}: {name}" for name, equal in same.items() if not equal]
        found["episodes"] += 1
        found["turns"] += len(core.ranges)
        found["tokens"] += sum(mask)
        with torch.no_grad():
            logits = model(experience.sequences).logits[0, :-1].float().log_softmax(-1)
        actual = logits.gather(1, experience.sequences[0, 1:, None]).squeeze(1)
        wrong = ((experience.rollout_log_probs[0] - actual) * experience.action_mask[0]).abs().max()
        found["logprob_error"] = worse(found["logprob_error"], float(wrong))
    return found


def local_episode(pipeline: Any, policy: Any, task: Any, script: Any, limits: TurnLimits) -> Any:
    """The rollout that the local trainer makes of a script."""

    def continued(policy: Any, contexts: Any, rooms: Any, **_: Any) -> list[Sampled]:
        return [Sampled(tuple(script(context)), (0.0,) * len(script(context)), False) for context in contexts]

    before = episodes.continue_contexts
    episodes.continue_contexts = continued
    try:
        groups = episodes.sample_groups(
            pipeline,
            policy,
            [task],
            LocalOptions(group=1),
            limits,
            (0,),
            None,
            lambda part: None,  # type: ignore[arg-type]
        )
    finally:
        episodes.continue_contexts = before
    return groups[0].rollouts[0]


def stock_instance(pipeline: Any, policy: Any, task: Any) -> type:
    """OpenRLHF's kind of environment, with a conversation of ours inside: texts in, texts out."""
    codec = policy.codec()
    end = policy.tokenizer.decode([policy.tokenizer.eos_token_id])

    class Instance(AgentInstanceBase):
        def __init__(self) -> None:
            conditions = evolve(pipeline.conditions, limits=TurnLimits(assistant_turns=4))
            self.conversation = pipeline.conversation(task, conditions=conditions)

        async def step(self, states: dict[str, Any], **_: Any) -> dict[str, Any]:
            said = self.conversation.take(Completion(states["action_text"]))
            self.conversation.hear(said)
            feedback = ""
            if said:
                feedback = codec.following(said)
                feedback = feedback.removeprefix(end)  # the engine's tokens hold it
            reward = 0.0 if not self.conversation.over else pipeline.score(self.conversation.attempt).total
            return {
                "rewards": torch.tensor(reward or 0.0),
                "environment_feedback": feedback,
                "done": self.conversation.over,
                "sampling_params": None,
                "extra_logs": {},
            }

    return Instance


def check_single_turn(folder: Path) -> dict[str, Any]:
    """OpenRLHF's single-turn executor with our reward function, and our executor, over the same script."""
    directory = make_model(folder / "model-single", "llama")
    model, tokenizer = loaded_model(directory)
    pipeline, _, files = make_run(folder / "run-single", directory, turns=False)
    _, _, function_files = make_run(folder / "run-function", directory, turns=False, rewards="function")
    executor = vllm_engine._load_agent_executor(str(files.entry))
    stock = SingleTurnAgentExecutor([str(function_files.entry)])
    found: dict[str, Any] = {"episodes": 0, "rewards": [], "differences": []}
    for row in rows_of(files.train):
        label = json.dumps({**json.loads(row["label"]), "copies": 1})
        task = pipeline.corpus.task(json.loads(label)["task"])
        for number, text in enumerate((pipeline.parser.render(task.program), "nothing of the kind")):
            written = tokenizer.encode(text, add_special_tokens=False)

            def script(context: Any, written: Any = written, number: int = number) -> list[int]:
                return [*written, tokenizer.eos_token_id] if number == 0 else written * 200

            results = []
            for one in (executor, stock):
                given = {"prompt": row["prompt"], "label": label, "max_length": 3300, "hf_tokenizer": tokenizer}
                engine = Engine(model, tokenizer, script)
                results.append(asyncio.run(one.execute(sampling_params=parameters(), llm_engine=engine, **given)))
            ours, theirs = results
            for key in ("observation_tokens", "action_ranges", "rollout_log_probs", "truncated", "reward", "scores"):
                if ours[key] != theirs[key]:
                    found["differences"].append(f"{task.id}: {key}: {ours[key]!r:.60} and {theirs[key]!r:.60}")
            found["episodes"] += 1
            found["rewards"].append(ours["reward"])
    return found


def check_limits(folder: Path) -> dict[str, Any]:
    """A random model that never ends by itself: caps of turns and tokens hold, and nothing is longer than it may be."""
    directory = make_model(folder / "model-limits", "qwen3")
    model, tokenizer = loaded_model(directory)
    pipeline, _, files = make_run(folder / "run-limits", directory, turns=True, turn_tokens=100)
    executor = vllm_engine._load_agent_executor(str(files.entry))
    row = rows_of(files.train)[0]
    task = pipeline.corpus.task(json.loads(row["label"])["task"])
    label = json.dumps({**json.loads(row["label"]), "copies": 1})
    prompt = len(tokenizer(text=row["prompt"], add_special_tokens=False)["input_ids"])
    sampled = Engine(model, tokenizer)
    given = {"prompt": row["prompt"], "label": label, "hf_tokenizer": tokenizer}
    small = prompt + 40
    ours = asyncio.run(
        executor.execute(sampling_params=parameters(logprobs=None), max_length=small, llm_engine=sampled, **given)
    )
    calls = [*tokenizer.encode(pipeline.parser.render(task.program), add_special_tokens=False), tokenizer.eos_token_id]
    forever = Engine(model, tokenizer, lambda context: calls)
    capped = asyncio.run(executor.execute(sampling_params=parameters(), max_length=4000, llm_engine=forever, **given))
    return {
        "sampled": len(ours["observation_tokens"]) - prompt,
        "within": len(ours["observation_tokens"]) <= small,
        "logprobs": ours["rollout_log_probs"],
        "truncated": ours["truncated"],
        "asked": sampled.asked,
        "turns": len(capped["action_ranges"]),
        "response": len(capped["observation_tokens"]) - prompt,
        "figures": sorted(ours["extra_logs"]) == sorted(capped["extra_logs"]),
    }


# 3. Advantages and losses ---------------------------------------------------------------------------------------------


def arguments_of(options: dict[str, Any]) -> tuple[Any, Any]:
    """The options of a recipe after OpenRLHF's parser, as its classes read them, and the algorithm."""
    text = 'name = "maths"\ncorpus = "toolworld-mini-v1"\nmodel = "some/model"\ntrainer = "openrlhf"\n[algorithm]\n'
    text += "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
    pipeline = build_pipeline(parse_recipe(text), default_registry())
    trainer = OpenRLHFTrainer(prompts=4, group=GROUP, max_new_tokens=20)
    translated = trainer._translate(pipeline, Files(Path("/RUN")))
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(sys.stderr):
        names["args"] = nested(parse(translated.argv))
    return names["args"], pipeline.algorithm


def nested(values: Any) -> Any:
    """Dictionaries as the namespaces that they were."""
    return SimpleNamespace(**{k: nested(v) if isinstance(v, dict) else v for k, v in values.items()})


def random_batch(seed: int, rows: int, width: int, prompt: int, gaps: bool) -> dict[str, Any]:
    """Log-probabilities, values and masks of a batch; ``gaps``: tokens of the environment between two completions."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.zeros(rows, prompt + width)
    for row in range(rows):
        length = int(torch.randint(4, width + 1, (1,), generator=generator))
        mask[row, prompt : prompt + length] = 1
        if gaps and length > 6:
            mask[row, prompt + 2 : prompt + 4] = 0
    logprobs = -2 * torch.rand(mask.shape, generator=generator)
    return {
        "mask": mask,
        "logprobs": logprobs + 0.3 * torch.randn(mask.shape, generator=generator),
        "old": logprobs,
        "ref": logprobs + 0.2 * torch.randn(mask.shape, generator=generator),
        "values": torch.randn(mask.shape, generator=generator),
        "new_values": torch.randn(mask.shape, generator=generator),
        "entropy": torch.rand(mask.shape, generator=generator),
    }


def worse(known: float, new: float) -> float:
    """The larger one; what is no number is the worst of all."""
    return max(known, new) if new == new else float("inf")


def their_advantages(args: Any, batch: dict[str, Any], rewards: Any) -> Any:
    """OpenRLHF's experience maker over a batch: advantages, returns and shaped rewards."""
    mask = batch["mask"]
    maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    maker.strategy = SimpleNamespace(args=args)
    maker.args, maker.advantage_estimator = args, args.algo.advantage.estimator
    maker.kl_ctl = SimpleNamespace(value=args.algo.kl.init_coef)
    in_reward = args.algo.kl.init_coef > 0 and not args.algo.kl.use_loss
    kl = torch.zeros_like(mask)
    if in_reward:  # as make_experience does, with log-probabilities that the actor multiplies by the mask
        kl = compute_approx_kl(batch["old"] * mask, batch["ref"] * mask, kl_estimator=args.algo.kl.estimator)
    experiences = [
        Experience(
            action_mask=mask[row : row + 1].bool(), rewards=rewards[row : row + 1].clone(), kl=kl[row : row + 1],
            values=batch["values"][row : row + 1], index=[row], info={},
            response_length=mask[row : row + 1].sum(1), truncated=torch.tensor([False]),
        )
        for row in range(len(mask))
    ]  # fmt: skip
    done = maker.compute_advantages_and_returns(experiences)
    return torch.cat([one.advantages for one in done]) * mask, torch.cat([one.returns for one in done]) * mask


def their_loss(args: Any, batch: dict[str, Any], advantages: Any, logprobs: Any) -> Any:
    """The loss of OpenRLHF's training step, put together as it is there."""
    mask = batch["mask"]
    low, high = args.actor.eps_clip_low_high
    policy = PolicyLoss(
        clip_eps_low=low, clip_eps_high=high, dual_clip=args.actor.dual_clip,
        token_level_loss=args.actor.loss_agg_mode == "token-mean", policy_loss_type=args.actor.policy_loss_type,
    )  # fmt: skip
    info = {
        "dp_size": 1,
        "batch_num_tokens": mask.sum(),
        "global_batch_size": (mask.sum(1) > 0).sum().float(),
    }
    loss = policy(logprobs, batch["old"], advantages, action_mask=mask, **info)[0]
    if args.algo.kl.use_loss and args.algo.kl.init_coef > 0:
        kl = compute_approx_kl(
            logprobs, batch["ref"], log_probs_old=batch["old"], kl_estimator=args.algo.kl.estimator,
            unbiased_gradient=args.algo.kl.unbiased_gradient,
        )  # fmt: skip
        loss = loss + args.algo.kl.init_coef * aggregate_loss(kl, mask, **info)
    if args.actor.entropy_coef:
        loss = loss - args.actor.entropy_coef * aggregate_loss(batch["entropy"], mask, **info)
    return loss


MATHS: dict[str, dict[str, Any]] = {
    "bn-grpo": {"name": "bn-grpo", "std_epsilon": 1e-9},
    "bn-grpo, clip higher, entropy": {
        "name": "bn-grpo", "std_epsilon": 1e-9, "epsilon_high": 0.3, "entropy_weight": 0.01
    },
    "bn-grpo, unbiased KL": {"name": "bn-grpo", "std_epsilon": 1e-9, "unbiased_kl": True},
    "bn-grpo, no deviation": {"name": "bn-grpo", "std": "none", "kl_weight": 0.0},
    "grpo": {"name": "grpo", "std_epsilon": 1e-9, "kl_weight": 0.0},
    "dapo": {"name": "dapo", "std_epsilon": 1e-9, "overlong_buffer": 8, "overlong_penalty": 0.5},
    "rloo": {"name": "rloo", "ratio": "token", "kl_weight": 0.0},
    "reinforce++": {"name": "reinforce++", "kl_weight": 0.05},
    "reinforce++-baseline": {"name": "reinforce++-baseline", "kl_weight": 0.05},
    "ppo": {"name": "ppo", "unbiased_std": False, "kl_weight": 0.05},
    "ppo, lam 0.9": {"name": "ppo", "unbiased_std": False, "kl_weight": 0.05, "lam": 0.9, "gamma": 0.99},
}  # fmt: skip


def check_maths() -> dict[str, Any]:
    """Largest differences between OpenRLHF's advantages, losses and gradients and ours on the same tensors."""
    found: dict[str, Any] = {}
    for name, options in MATHS.items():
        args, algorithm = arguments_of(dict(options))
        worst = {"advantages": 0.0, "loss": 0.0, "gradient": 0.0, "value_loss": 0.0, "largest": 0.0}
        for seed in range(6):
            several = seed % 2 == 1 and "lam 0.9" not in name
            batch = random_batch(seed, 4 * GROUP, 20, 5, several)
            generator = torch.Generator().manual_seed(100 + seed)
            step = grid_step(GROUP, 1.0)
            drawn = torch.randint(0, 11, (4, GROUP), generator=generator).tolist()
            drawn[0] = [7] * GROUP  # a group that teaches nothing
            rewards = torch.tensor([[steady(value / 10 + 1e-8 * place, step) for place, value in enumerate(group)]
                                    for group in drawn])  # fmt: skip
            theirs, returns = their_advantages(args, batch, rewards.reshape(-1))
            mask = batch["mask"]
            # lengths as OpenRLHF has them: from the first sampled token to the last
            lengths = mask.sum(1).reshape(4, GROUP)
            shaped = algorithm.shape_rewards(rewards, lengths, 20)
            scores = algorithm.advantages(shaped, torch.ones_like(rewards)).reshape(-1)
            if hasattr(algorithm, "token_advantages"):
                experience = Batch(
                    scores=scores, groups=torch.arange(4).repeat_interleave(GROUP), mask=mask, logprobs=batch["old"],
                    ref_logprobs=batch["ref"], values=batch["values"],
                )  # fmt: skip
                ours, our_returns = algorithm.token_advantages(experience)
            else:
                ours = scores.unsqueeze(1) * mask
            worst["advantages"] = worse(worst["advantages"], float((ours - theirs).abs().max()))
            worst["largest"] = worse(worst["largest"], float(theirs.abs().max()))
            losses, gradients = [], []
            for side in ("theirs", "ours"):
                logprobs = batch["logprobs"].clone().requires_grad_(True)
                if side == "theirs":
                    loss = their_loss(args, batch, theirs, logprobs)
                else:
                    token = TokenBatch(
                        logprobs=logprobs, old_logprobs=batch["old"], mask=mask, ref_logprobs=batch["ref"],
                        advantages=ours, entropy=batch["entropy"], normaliser=algorithm.normaliser(mask),
                    )  # fmt: skip
                    loss = algorithm.loss(token).loss
                loss.backward()
                losses.append(float(loss.detach()))
                gradients.append(logprobs.grad)
            worst["loss"] = worse(worst["loss"], abs(losses[0] - losses[1]))
            worst["gradient"] = worse(worst["gradient"], float((gradients[0] - gradients[1]).abs().max()))
            if hasattr(algorithm, "value_loss"):
                value = ValueLoss(args.critic.value_clip)(
                    batch["new_values"], batch["values"], returns, action_mask=mask
                )
                own = algorithm.value_loss(ValueBatch(batch["new_values"], batch["values"], our_returns, mask)).loss
                worst["value_loss"] = worse(worst["value_loss"], abs(float(value) - float(own)))
        found[name] = worst
    return found


def check_equal_rewards() -> dict[str, Any]:
    """Groups of equal rewards: OpenRLHF's advantages with plain decimals, and on our grid."""
    args, _ = arguments_of({"name": "grpo"})
    worst = {"decimals": 0.0, "grid": 0.0, "groups": 0}
    for group in (2, 3, 4, 5, 6, 8, 12, 16):
        args.rollout.n_samples_per_prompt = group
        for value in range(0, 1000, 7):
            batch = {"mask": torch.ones(group, 3), "values": torch.zeros(group, 3)}
            for kind, reward in (
                ("decimals", round(value / 1000, 6)),
                ("grid", steady(value / 1000, grid_step(group, 1.0))),
            ):
                advantages, _ = their_advantages(args, batch, torch.full((group,), reward))
                worst[kind] = worse(worst[kind], float(advantages.abs().max()))
            worst["groups"] += 1
    return worst


def check_overlong() -> float:
    """The largest difference between OpenRLHF's punishment of long responses and DAPO's."""
    _, algorithm = arguments_of({"name": "dapo", "overlong_buffer": 8, "overlong_penalty": 0.5})
    lengths = torch.arange(0, 24)
    experiences = [SimpleNamespace(rewards=torch.zeros(24), response_length=lengths)]
    apply_overlong_penalty(experiences, 20, 8, 0.5)
    ours = algorithm.shape_rewards(torch.zeros(1, 24), lengths.unsqueeze(0), 20)
    return float((experiences[0].rewards - ours[0]).abs().max())


# Masked episodes and groups -------------------------------------------------------------------------------------------


def check_masking(folder: Path) -> dict[str, Any]:
    """Groups in which the machinery fails, through OpenRLHF's experience, advantages and loss."""
    directory = make_model(folder / "model-masking", "llama")
    model, tokenizer = loaded_model(directory)
    pipeline, _, files = make_run(folder / "run-masking", directory, turns=True, algorithm="dapo", group=GROUP)
    executor = vllm_engine._load_agent_executor(str(files.entry))
    row = next(row for row in rows_of(files.train) if json.loads(row["label"])["copies"] == GROUP)
    task = pipeline.corpus.task(json.loads(row["label"])["task"])
    prompt = len(tokenizer(text=row["prompt"], add_special_tokens=False)["input_ids"])
    right = scripted(pipeline, tokenizer, task, prompt)
    wrong = [*tokenizer.encode("nothing", add_special_tokens=False), tokenizer.eos_token_id]

    def group(kinds: list[str]) -> list[dict[str, Any]]:
        async def sample() -> Any:
            calls = []
            for kind in kinds:
                engine = Engine(model, tokenizer, right if kind == "right" else lambda context: wrong)
                if kind == "broken":
                    engine.generate = broken  # type: ignore[method-assign]
                calls.append(
                    executor.execute(
                        prompt=row["prompt"],
                        label=row["label"],
                        sampling_params=parameters(),
                        max_length=4000,
                        hf_tokenizer=tokenizer,
                        llm_engine=engine,
                    )
                )
            return await asyncio.gather(*calls)

        return asyncio.run(sample())

    async def broken(*_: Any, **__: Any) -> Any:
        raise InfrastructureFailure("the server is away")

    mixed = group(["right", "broken", "wrong", "right"])
    equal = group(["wrong", "wrong", "wrong", "wrong"])
    all_right = group(["right"] * 4)
    lost = group(["broken"] * 4)
    args, algorithm = arguments_of({"name": "bn-grpo", "kl_weight": 0.0})
    responses = [experience_of(one, 4000) for one in mixed]
    for index, one in enumerate(responses):
        one.index = [index]
        one.kl = torch.zeros(one.action_mask.shape)
    maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    maker.strategy, maker.args = SimpleNamespace(args=args), args
    maker.advantage_estimator, maker.kl_ctl = "group_norm", SimpleNamespace(value=0.0)
    done = maker.compute_advantages_and_returns(responses)
    whole = Experience.concat_experiences([deepcopy(one) for one in done], tokenizer.pad_token_id)
    logprobs = torch.zeros(whole.action_mask.shape, requires_grad=True)
    loss = their_loss(
        args, {"mask": whole.action_mask.float(), "old": torch.zeros_like(logprobs)}, whole.advantages, logprobs
    )
    loss.backward()
    assert logprobs.grad is not None
    return {
        "rewards": [one["reward"] for one in mixed],
        "masked_tokens": int(responses[1].action_mask.sum()),
        "advantages": [
            float((one.advantages * one.action_mask).sum() / one.action_mask.sum().clamp(min=1)) for one in done
        ],
        "exact": algorithm.advantages(
            torch.tensor([[one["reward"] for one in mixed]]), torch.tensor([[True, False, True, True]])
        )[0].tolist(),
        "gradient_of_masked": float(logprobs.grad[1].abs().max()),
        "finite": bool(torch.isfinite(loss)) and bool(torch.isfinite(logprobs.grad).all()),
        "keys": len({tuple(sorted(one["extra_logs"])) for one in [*mixed, *equal, *lost]}),
        "scores": {"mixed": mean_score(mixed), "equal": mean_score(equal), "right": mean_score(all_right)},
        "lost": [one["action_ranges"] for one in lost],
        "failure": files.failure.exists(),
    }


def mean_score(responses: list[dict[str, Any]]) -> float:
    """What OpenRLHF's dynamic filtering looks at."""
    return sum(one["scores"] for one in responses) / len(responses)


# 4. Training steps ----------------------------------------------------------------------------------------------------


class Strategy:
    """What OpenRLHF's DeepSpeed strategy does with one GPU and no ZeRO: backward, clip, step."""

    ring_attn_group = None
    accumulated_gradient = 1

    def __init__(self, args: Any, parameters: Any, max_norm: float) -> None:
        self.args, self._parameters, self._max_norm, self.norms = args, list(parameters), max_norm, []

    def backward(self, loss: Any, model: Any, optimiser: Any) -> None:
        loss.backward()

    def optimizer_step(self, optimiser: Any, model: Any, scheduler: Any, name: str = "model") -> None:
        self.norms.append(float(torch.nn.utils.clip_grad_norm_(self._parameters, self._max_norm)))
        optimiser.step()
        optimiser.zero_grad()
        scheduler.step()

    def get_grad_norm(self, model: Any) -> float:
        return self.norms[-1]

    def is_rank_0(self) -> bool:
        return True


def check_training(folder: Path, kind: str) -> dict[str, Any]:
    """OpenRLHF's Actor and training step take updates on the CPU with experiences of our executor.

    Of each group one completion is a program without calls, the others are sampled.
    """
    directory = make_model(folder / f"model-training-{kind}", kind)
    _, tokenizer = loaded_model(directory)
    pipeline, trainer, files = make_run(
        folder / f"run-training-{kind}", directory, turns=True, turn_tokens=40, attention="eager", learning_rate=1e-3
    )
    with contextlib.redirect_stdout(sys.stderr):
        args = nested(parse(trainer._translate(pipeline, files).argv))
    executor = vllm_engine._load_agent_executor(str(files.entry))
    actor = Actor(str(directory), attn_implementation=args.ds.attn_implementation, temperature=args.rollout.temperature)
    actor.model.float()
    reference = Actor(str(directory), attn_implementation=args.ds.attn_implementation)
    reference.model.float()
    optimiser = torch.optim.AdamW(actor.parameters(), lr=args.actor.adam.lr, betas=tuple(args.actor.adam.betas))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1.0)
    strategy = Strategy(args, actor.parameters(), args.actor.max_norm)
    # Both only ask CUDA for its device; the step below reads neither.
    ppo_actor.torch_dist_barrier_and_cuda_sync = lambda: None
    ppo_actor.NaiveReplayBuffer = lambda *_: None
    step = ppo_actor.ActorPPOTrainer(
        strategy, actor, None, optimiser, scheduler, micro_train_batch_size=args.train.micro_batch_size,
        tokenizer=tokenizer, vllm_engines=None,
    )  # fmt: skip
    engine = Engine(actor.model, tokenizer)
    maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    maker.strategy, maker.args = strategy, args
    maker.advantage_estimator = args.algo.advantage.estimator
    maker.kl_ctl = SimpleNamespace(value=args.algo.kl.init_coef)
    rows = rows_of(files.train)
    algorithm = pipeline.algorithm
    updates: list[dict[str, Any]] = []
    before = [parameter.detach().clone() for parameter in actor.parameters()]
    for update in range(3):
        responses: list[dict[str, Any]] = []
        for row in rows[update * 2 : update * 2 + 2]:
            written = tokenizer.encode(pipeline.parser.render(Program()), add_special_tokens=False)
            ended = [*written, tokenizer.eos_token_id]
            right = Engine(actor.model, tokenizer, lambda context, ended=ended: ended)

            async def sample(row: Any = row, right: Any = right) -> Any:
                given = {
                    "prompt": row["prompt"],
                    "label": row["label"],
                    "max_length": args.data.max_len,
                    "hf_tokenizer": tokenizer,
                }
                return await asyncio.gather(
                    *(
                        executor.execute(
                            sampling_params=parameters(max_tokens=40),
                            llm_engine=right if copy == 0 else engine,
                            **given,
                        )
                        for copy in range(GROUP)
                    )
                )

            actor.eval()
            responses += asyncio.run(sample())
        experiences = [experience_of(one, args.data.max_len) for one in responses]
        for index, one in enumerate(experiences):
            one.index = [index]
            with torch.no_grad():
                one.action_log_probs = actor(one.sequences, one.action_mask, one.attention_mask)
                one.base_action_log_probs = reference(one.sequences, one.action_mask, one.attention_mask)
            one.kl = torch.zeros_like(one.action_log_probs)
        sampled_error = max(
            float(((one.rollout_log_probs - one.action_log_probs) * one.action_mask).abs().max()) for one in experiences
        )
        done = maker.compute_advantages_and_returns(experiences)
        whole = Experience.concat_experiences(done, tokenizer.pad_token_id)
        # ours on the same tensors
        mask = whole.action_mask.float()
        rewards = torch.tensor([[one["reward"] for one in responses]]).reshape(2, GROUP)
        same = evolve(algorithm, std_epsilon=1e-9)
        scores = same.advantages(rewards, torch.ones_like(rewards)).reshape(-1)
        ours = same.loss(
            TokenBatch(
                logprobs=whole.action_log_probs,
                old_logprobs=whole.action_log_probs,
                mask=mask,
                advantages=scores,
                ref_logprobs=whole.base_action_log_probs,
                normaliser=algorithm.normaliser(mask),
            )
        ).loss
        status = step.training_step(whole, args.algo.kl.init_coef, update)["metrics"]
        theirs = float(status["policy_loss"]) + args.algo.kl.init_coef * float(status["kl"])
        updates.append(
            {
                "loss": theirs,
                "our_loss": float(ours),
                "norm": strategy.norms[-1],
                "tokens": int(mask.sum()),
                "sampled_error": sampled_error,
                "rewards": rewards.reshape(-1).tolist(),
            }
        )
    moved = max(float((new - old).abs().max().detach()) for new, old in zip(actor.parameters(), before, strict=True))
    figures = sorted(key for key in status if key.startswith("callwright/"))
    return {"updates": updates, "moved": moved, "figures": figures}


# 6. What is logged ----------------------------------------------------------------------------------------------------


def check_events(folder: Path) -> dict[str, Any]:
    """OpenRLHF's trainer logs steps and evaluations through its own logger; what is read of its file, as it goes."""
    from openrlhf.trainer.ppo_trainer import BasePPOTrainer
    from openrlhf.utils.logging_utils import TensorboardLogger

    from callwright_plugins.openrlhf_trainer.following.events import EventReader
    from callwright_plugins.openrlhf_trainer.following.metrics import Steps

    class Trainer(BasePPOTrainer):
        """Its methods, without models."""

    pipeline, trainer, files = make_run(folder / "run-events", make_model(folder / "model-events", "llama"), turns=True)
    with contextlib.redirect_stdout(sys.stderr):
        args = nested(parse(trainer._translate(pipeline, files).argv))
    args.ckpt.save_steps = float("inf")
    reader, steps = EventReader(files.events), Steps()
    made = Trainer.__new__(Trainer)
    made.args, made.wandb_logger, made.tensorboard_logger = args, None, TensorboardLogger(args)
    given: list[Any] = []
    read: list[Any] = []

    def read_on() -> None:
        for _ in range(200):  # its writer is a thread
            read.extend([one.step, one.evaluation, dict(one.figures)] for one in steps.over(reader.read()))
            if len(read) == len(given):
                return
            time.sleep(0.05)

    for step in range(1, 4):
        drawn = torch.rand(3, generator=torch.Generator().manual_seed(step)).tolist()
        figures = {
            "policy_loss": drawn[0], "actor_grad_norm": drawn[1], "kl": float("nan"), "actor_lr": 1e-6 / step,
            "callwright/answered": (drawn[2] + 1) / 3, "rollout/num_samples": 8.0, "nothing": None,
            "generated_samples": ["a text", 0.5], "timing/step_total": 12.5,
        }  # fmt: skip
        made.save_logs_and_checkpoints(step, figures)
        given.append([step, False, {key: value for key, value in figures.items() if isinstance(value, float)}])
        read_on()
        if step % 2 == 0:
            measured = {"eval_depth 1_pass1": 0.1, "eval_num_samples": 4.0}
            made.tensorboard_logger.log_eval(step, measured)
            given.append([step, True, measured])
            read_on()
    live = len(read)
    made.tensorboard_logger.close()
    read_on()
    return {"given": given, "read": read, "live": live}


def main() -> None:
    """Run the checks that are named, or all of them, and print what they measured."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder = Path(sys.argv[1])
    checks = {
        "arguments": lambda: check_arguments(folder),
        "executors-qwen3": lambda: check_executors(folder, "qwen3"),
        "executors-llama": lambda: check_executors(folder, "llama"),
        "single-turn": lambda: check_single_turn(folder),
        "limits": lambda: check_limits(folder),
        "maths": check_maths,
        "equal-rewards": check_equal_rewards,
        "overlong": check_overlong,
        "masking": lambda: check_masking(folder),
        "training-qwen3": lambda: check_training(folder, "qwen3"),
        "training-llama": lambda: check_training(folder, "llama"),
        "events": lambda: check_events(folder),
    }
    found: dict[str, Any] = {"stubs": STUBS}
    for name in sys.argv[2:] or checks:
        with contextlib.redirect_stdout(sys.stderr):
            found[name] = checks[name]()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
