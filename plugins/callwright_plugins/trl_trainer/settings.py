"""A recipe as arguments of TRL's ``GRPOConfig``, and what of it TRL does in another way. Nothing heavy is imported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from callwright.capability import has
from callwright.errors import UsageError
from callwright.options import WrongOption
from callwright.training.algorithm import ActorCritic, Algorithm, PlacesCredit, TokenLevel
from callwright.walk.limits import TurnLimits
from callwright_plugins.trl_trainer.options import Options


@frozen
class Difference:
    """A key of the recipe that is followed in another way than by the trainer ``local``.

    ``refused``: training by such a recipe would be training of something else, so it does not start.
    """

    key: str
    wanted: Any
    given: Any
    why: str
    refused: bool = field(default=False, kw_only=True)

    def to_json(self) -> dict[str, Any]:
        """The difference as it is printed."""
        return {"key": self.key, "wanted": self.wanted, "given": self.given, "why": self.why}

    def __str__(self) -> str:
        """The difference as a line of text."""
        return f"{self.key}: {self.given!r} in place of {self.wanted!r}; {self.why}"


@frozen
class Translation:
    """Arguments of ``GRPOConfig``, and the differences between them and the recipe."""

    arguments: Mapping[str, Any] = field(factory=dict)
    differences: tuple[Difference, ...] = ()


def foreign(differences: Iterable[Difference]) -> list[UsageError]:
    """A mistake for each key that cannot be followed at all."""
    return [
        WrongOption(f"{one.key} = {one.wanted!r}: {one.why}", tuple(one.key.split(".")))
        for one in differences
        if one.refused
    ]


def refuse_inexact(differences: Iterable[Difference], allowed: Collection[str]) -> None:
    """Raises :class:`callwright.UsageError` naming all that is not as the recipe says, but for the ``allowed`` keys."""
    left = [one for one in differences if one.key not in allowed]
    if left:
        lines = "\n".join(f"  {one}" for one in left)
        keys = ",".join(dict.fromkeys(one.key for one in left))
        raise UsageError(
            f"strict: TRL does not do exactly what the recipe says (--strict-except {keys} lets it pass)\n{lines}"
        )


def translate(options: Options, algorithm: Algorithm, limits: TurnLimits, *, seed: int, folder: str) -> Translation:
    """What TRL is told of a recipe. ``folder`` is where it writes checkpoints.

    Raises :class:`callwright.UsageError` for an algorithm that TRL's loss has no counterpart of.
    """
    loss = _loss(algorithm)
    return Translation({**_common(options, limits, seed, folder), **loss.arguments}, loss.differences + _kept(options))


def longest(options: Options, limits: TurnLimits) -> int:
    """The most tokens that a response may have: what lengths are shaped against, and L_max of Dr. GRPO."""
    return limits.total_tokens or limits.assistant_turns * (limits.turn_tokens or options.max_new_tokens)


def _common(options: Options, limits: TurnLimits, seed: int, folder: str) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "output_dir": folder,
        "seed": seed,
        "max_steps": options.steps * options.updates,
        "num_generations": options.group,
        "per_device_train_batch_size": options.part // options.micro_batches,
        "gradient_accumulation_steps": options.micro_batches,
        "steps_per_generation": options.micro_batches * options.mini_batches,
        "num_iterations": options.iterations,
        "temperature": options.temperature,
        "max_completion_length": longest(options, limits),
        "learning_rate": options.learning_rate,
        "optim": options.optimizer,
        "adam_beta1": options.betas[0],
        "adam_beta2": options.betas[1],
        "weight_decay": options.weight_decay,
        "max_grad_norm": options.clip_norm,
        "bf16": options.dtype == "bfloat16",
        "gradient_checkpointing": options.gradient_checkpointing,
        "use_cpu": options.device == "cpu",
        "disable_dropout": True,
        "shuffle_dataset": False,
        "save_strategy": "steps",
        "save_steps": options.checkpoint_every * options.updates,
        "logging_strategy": "steps" if options.trackers else "no",
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "report_to": list(options.trackers) or "none",
        "disable_tqdm": True,
        "ignore_data_skip": True,
        "dataloader_pin_memory": False,
        "ddp_find_unused_parameters": False,
        "eval_strategy": "no",
        "model_init_kwargs": {
            "dtype": options.weights,
            **({"attn_implementation": options.attention} if options.attention else {}),
        },
    }
    if options.gradient_checkpointing:
        arguments["gradient_checkpointing_kwargs"] = {"use_reentrant": False}
    if options.device == "cpu" and options.processes > 1:
        arguments["ddp_backend"] = "gloo"
    vllm = options.vllm
    if vllm is not None:
        arguments |= {
            "use_vllm": True,
            "vllm_mode": vllm.mode,
            "vllm_gpu_memory_utilization": vllm.gpu_memory,
            "vllm_tensor_parallel_size": vllm.tensor_parallel,
            "vllm_max_model_length": vllm.max_model_length,
            "vllm_enable_sleep_mode": vllm.sleep,
            "vllm_server_base_url": vllm.server_url,
            "vllm_server_timeout": vllm.server_timeout,
            "vllm_importance_sampling_correction": vllm.correction != "none",
        }
        if vllm.correction != "none":
            arguments["vllm_importance_sampling_mode"] = vllm.correction
            arguments["vllm_importance_sampling_clip_max"] = vllm.correction_max
    return arguments


def _kept(options: Options) -> tuple[Difference, ...]:
    """What of ``[trainer]`` is followed in another way than by the trainer ``local``."""
    found = []
    if options.vllm is not None:
        found.append(
            Difference(
                "trainer.vllm",
                "samples of the trained model's own arithmetic, drawn by the recipe's seed",
                "samples of vLLM",
                "its log-probabilities differ a little (vllm.correction weighs them), and a resumed run draws others",
            )
        )
    if options.quantization != "none":
        found.append(
            Difference(
                "trainer.quantization",
                "none",
                options.quantization,
                "the frozen weights are rounded; checkpoints/final is the unrounded model with the adapter",
            )
        )
    if options.weights == "bfloat16" and options.lora is None:
        found.append(
            Difference(
                "trainer.weights",
                "float32",
                "bfloat16",
                "without float32 masters, updates smaller than 1/256 of a weight are lost",
            )
        )
    return tuple(found)


# Algorithms -----------------------------------------------------------------------------------------------------------


def _loss(algorithm: Algorithm) -> Translation:
    """The arguments of TRL's loss. Advantages, shaping and which groups are kept stay the algorithm's own."""
    found = _LOSSES[algorithm.name](algorithm) if algorithm.name in _LOSSES else None
    differences = () if found is None else found.differences + _foreign(algorithm)
    token_level = isinstance(algorithm, TokenLevel | ActorCritic) and not any(one.refused for one in differences)
    if found is None or token_level:
        known = ", ".join(sorted(_LOSSES))
        raise UsageError(f"the trainer 'trl' has no counterpart of the algorithm {algorithm.name!r}. Known: {known}")
    return Translation(found.arguments, differences)


def _foreign(algorithm: Any) -> tuple[Difference, ...]:
    """Options of an algorithm that TRL's loss has no place for."""
    found = []
    if algorithm.kl_weight and algorithm.kl_in == "reward":
        why = "TRL's KL term stands in the loss; with the divergence in the reward use the trainer 'local'"
        found.append(Difference("algorithm.kl_in", "reward", "loss", why, refused=True))
    estimator = algorithm.kl_estimator or ("k3" if algorithm.kl_in == "loss" else "k1")
    if algorithm.kl_weight and algorithm.kl_in == "loss" and estimator != "k3":
        why = "TRL estimates the divergence by k3"
        found.append(Difference("algorithm.kl_estimator", estimator, "k3", why, refused=True))
    if algorithm.entropy_weight:
        why = "TRL divides its entropy term by the tokens of a micro-batch, not by those that the policy's part has"
        found.append(Difference("algorithm.entropy_weight", algorithm.entropy_weight, 0.0, why, refused=True))
    if has(algorithm, PlacesCredit) and algorithm.credit_share:
        why = "TRL's loss has one advantage for all tokens of a completion; use the trainer 'local'"
        found.append(Difference("algorithm.credit_share", algorithm.credit_share, 0.0, why, refused=True))
    return tuple(found)


def _terms(algorithm: Any, loss_type: str, low: float, high: float | None) -> dict[str, Any]:
    return {
        "loss_type": loss_type,
        "beta": algorithm.kl_weight,
        "epsilon": low,
        "epsilon_high": low if high is None else high,
        "use_bias_correction_kl": bool(getattr(algorithm, "unbiased_kl", False)),
    }


def _grpo(algorithm: Any) -> Translation:
    whole = Difference(
        "algorithm.ratio",
        "response",
        "token",
        "TRL has the ratio of each token, or the mean of a response's, never the product over a response",
        refused=True,
    )
    arguments = _terms(algorithm, "grpo", algorithm.epsilon, algorithm.epsilon_high)
    return Translation(arguments, () if algorithm.ratio == "token" else (whole,))


def _token_sum(algorithm: Any) -> Translation:
    """TRL's ``dapo`` divides by the tokens of the whole batch; its ``bnpo`` by those of each micro-batch."""
    return Translation(_terms(algorithm, "dapo", algorithm.epsilon, algorithm.epsilon_high))


def _dapo(algorithm: Any) -> Translation:
    return Translation(_terms(algorithm, "dapo", algorithm.epsilon_low, algorithm.epsilon_high))


def _dr_grpo(algorithm: Any) -> Translation:
    return Translation(_terms(algorithm, "dr_grpo", algorithm.epsilon, algorithm.epsilon_high))


def _gspo(algorithm: Any) -> Translation:
    arguments = _terms(algorithm, "grpo", algorithm.epsilon, algorithm.epsilon_high)
    return Translation({**arguments, "importance_sampling_level": "sequence"})


def _cispo(algorithm: Any) -> Translation:
    """TRL bounds the weight of a token above alone, and states the bound itself."""
    below = Difference(
        "algorithm.epsilon_low", algorithm.epsilon_low, None, "TRL's cispo has no bound below", refused=True
    )
    arguments = {**_terms(algorithm, "cispo", 0.2, None), "epsilon_high": 1 + algorithm.epsilon_high}
    return Translation(arguments, () if algorithm.epsilon_low is None else (below,))


_LOSSES: Final[Mapping[str, Callable[[Any], Translation]]] = {
    "grpo": _grpo,
    "bn-grpo": _token_sum,
    "dapo": _dapo,
    "dr-grpo": _dr_grpo,
    "gspo": _gspo,
    "cispo": _cispo,
}
