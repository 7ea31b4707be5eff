"""Algorithms as flags of OpenRLHF 0.11.2, each with what its estimators and losses do otherwise.

Formulas of both sides stand in the modules of ``policy_gradient`` and in OpenRLHF's ``experience_maker`` and ``loss``;
the tests compare them on the same tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from callwright.capability import has
from callwright.errors import UsageError
from callwright.training.algorithm import PlacesCredit, ScalesByDeviation, UnbiasedKL
from callwright.walk.limits import TurnLimits
from callwright_plugins.openrlhf_trainer.options import Options
from callwright_plugins.openrlhf_trainer.translation.arguments import (
    Argument,
    Difference,
    Translation,
    argument,
    translation,
)

#: What OpenRLHF adds to the deviation of a group.
STD_EPSILON: Final = 1e-9

ESTIMATOR: Final = "--algo.advantage.estimator"


def translate_algorithm(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    """The flags of an algorithm. Raises :class:`callwright.UsageError` for one that OpenRLHF has nothing like."""
    translate = _TRANSLATIONS.get(str(algorithm.name))
    if translate is None:
        known = ", ".join(sorted(_TRANSLATIONS))
        raise UsageError(
            f"the trainer 'openrlhf' has no counterpart of the algorithm {algorithm.name!r}. Known: {known}"
        )
    found = translate(algorithm, options, limits)
    if algorithm.entropy_weight:
        found += translation(argument("--actor.entropy_coef", algorithm.entropy_weight))
    if has(algorithm, PlacesCredit) and algorithm.credit_share:
        why = "OpenRLHF is told one reward for a completion; the trainer 'local' places penalties on tokens"
        placed = Difference("algorithm.credit_share", algorithm.credit_share, 0.0, why, refused=True)
        found += translation(unsupported=[placed])
    # OpenRLHF clips advantages (rewards, for gae and reinforce) to [-10, 10] unless told otherwise.
    return found + translation(argument("--reward.clip_range", -1e9, 1e9))


def _clip(low: float, high: float | None) -> Argument:
    return argument("--actor.eps_clip_low_high", low, low if high is None else high)


def _kl_in_loss(algorithm: Any, estimator: str) -> Translation:
    weight = algorithm.kl_weight
    if not weight:
        return translation(argument("--algo.kl.init_coef", 0.0))
    arguments = [
        argument("--algo.kl.init_coef", weight),
        argument("--algo.kl.use_loss"),
        argument("--algo.kl.estimator", estimator),
    ]
    if has(algorithm, UnbiasedKL) and algorithm.unbiased_kl:  # the same gradient: rho (log pi - log pi_ref) grad log pi
        arguments.append(argument("--algo.kl.unbiased_gradient"))
    return translation(*arguments)


def _kl_of_group(algorithm: Any) -> Translation:
    """The KL term of GRPO and its kin. In the reward it comes off before the group is normalised, which is refused."""
    if algorithm.kl_in == "loss":
        return _kl_in_loss(algorithm, algorithm.kl_estimator or "k3")
    before = Difference(
        "algorithm.kl_in",
        "reward",
        "loss",
        "OpenRLHF takes the divergence off after the rewards of a group are normalised, which is something else: in a "
        "group of equal rewards it would be no advantage of unit size. The trainer 'local' takes it off before",
        refused=True,
    )
    weight = algorithm.kl_weight
    return translation(argument("--algo.kl.init_coef", weight), unsupported=[before] if weight else [])


def _kl_in_reward(algorithm: Any, estimator: str) -> Translation:
    weight = algorithm.kl_weight
    return translation(argument("--algo.kl.init_coef", weight), argument("--algo.kl.estimator", estimator))


def _group_normalised(algorithm: Any, options: Options) -> Translation:
    """Rewards less the mean of their group, over its deviation."""
    std = algorithm.std if has(algorithm, ScalesByDeviation) else "group"
    if std == "none":
        return translation(argument(ESTIMATOR, "dr_grpo"))
    whole = Difference(
        "algorithm.std",
        "batch",
        "group",
        "OpenRLHF has no estimator that divides by the deviation of the whole batch",
        refused=True,
    )
    epsilon = Difference(
        "algorithm.std_epsilon",
        algorithm.std_epsilon,
        STD_EPSILON,
        "fixed in OpenRLHF; relative effect std_epsilon / deviation. Rewards are rounded so that a group of equal ones "
        "still gets advantages of exactly 0",
    )
    population = Difference(
        "algorithm.std",
        "population",
        "group",
        f"OpenRLHF divides by the deviation with the divisor n - 1: every advantage is {_shrunk(options.group):.6g} "
        "times as large",
    )
    return translation(
        argument(ESTIMATOR, "group_norm"),
        approximated=([epsilon] if algorithm.std_epsilon != STD_EPSILON else [])
        + ([population] if std == "population" else []),
        unsupported=[whole] if std == "batch" else [],
    )


def _shrunk(group: int) -> float:
    """What dividing by the deviation with n - 1 instead of n makes of the advantages of a group of n."""
    return math.sqrt((group - 1) / group)


def _token_mean(options: Options, algorithm: Any) -> Translation:
    return translation(argument("--actor.loss_agg_mode", "token-mean"))


def _grpo(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    whole = algorithm.ratio == "response"
    weights = [("kl_weight", "KL term")] if algorithm.kl_in == "loss" else []
    differences = [
        Difference(
            f"algorithm.{key}",
            "a mean over the tokens of each sequence, then over sequences",
            "a mean over all tokens",
            f"OpenRLHF takes only the policy's part of the loss by sequence, never the {what}",
        )
        for key, what in [*weights, ("entropy_weight", "entropy")]
        if getattr(algorithm, key)
    ]
    if whole:
        differences.append(
            Difference(
                "algorithm.ratio",
                "response: a mean over responses, which no length divides",
                "token: a mean over all tokens",
                "OpenRLHF has the ratios of tokens (in gspo, of responses, to the power of 1 / length). Before the "
                "policy moves, its gradient is the same but for a factor, 1 / the mean length of responses, which a KL "
                "term or an entropy bonus does not have; afterwards other tokens are clipped",
            )
        )
    return (
        _group_normalised(algorithm, options)
        + _kl_of_group(algorithm)
        + translation(
            argument("--actor.loss_agg_mode", "token-mean" if whole else "seq-mean-token-mean"),
            _clip(algorithm.epsilon, algorithm.epsilon_high),
            approximated=differences,
        )
    )


def _bn_grpo(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    local = Difference(
        "algorithm.name",
        "bn-grpo: a mean over the tokens of each local batch (TRL's bnpo)",
        "a mean over the tokens of an update, of all GPUs",
        "OpenRLHF has one normaliser for each update. The trainer 'local' takes the same one; TRL takes that of each "
        "micro-batch",
    )
    held_at_once = options.nodes * options.gpus_per_node == 1 and (
        options.micro_batch >= options.prompts * options.group // options.mini_batches
    )
    return (
        _group_normalised(algorithm, options)
        + _kl_of_group(algorithm)
        + _token_mean(options, algorithm)
        + translation(_clip(algorithm.epsilon, algorithm.epsilon_high), approximated=[] if held_at_once else [local])
    )


def _dapo(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    longest = response_limit(limits, options)
    arguments = [_clip(algorithm.epsilon_low, algorithm.epsilon_high)]
    approximated = []
    buffer = longest // 5 if algorithm.overlong_buffer is None else algorithm.overlong_buffer
    if buffer > longest:
        raise UsageError(f"dapo: overlong_buffer is {buffer} tokens, but a response may only have {longest}")
    if buffer:
        arguments += [
            argument("--reward.overlong_buffer_len", buffer),
            argument("--reward.overlong_penalty_factor", algorithm.overlong_penalty),
        ]
        if not limits.single and limits.total_tokens is None:
            approximated.append(
                Difference(
                    "algorithm.overlong_buffer",
                    "lengths that count sampled tokens",
                    "lengths from the first sampled token to the last, results of calls included",
                    "OpenRLHF's length of a response spans them; with turns.total_tokens both count them",
                )
            )
    if algorithm.dynamic_sampling:
        arguments += [argument("--algo.dynamic_filtering_enable"), argument("--algo.dynamic_filtering_range", 0.0, 1.0)]
        approximated.append(
            Difference(
                "trainer.steps",
                options.steps,
                f"at most {options.steps}",
                "dynamic sampling draws other prompts from the exported data, and OpenRLHF stops where that ends",
            )
        )
        if options.rewards == "function":
            approximated.append(
                Difference(
                    "algorithm.dynamic_sampling",
                    "groups of equal rewards are left out",
                    "groups of the lowest or the highest reward throughout are",
                    "a reward function does not know the other completions of a prompt; the agent does",
                )
            )
    return (
        _group_normalised(algorithm, options)
        + _kl_of_group(algorithm)
        + _token_mean(options, algorithm)
        + translation(*arguments, approximated=approximated)
    )


def _dr_grpo(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    constant = Difference(
        "algorithm.max_length",
        response_limit(limits, options) if algorithm.max_length is None else algorithm.max_length,
        "the tokens of an update",
        "OpenRLHF divides the loss by the number of tokens, not by a constant length times the number of sequences",
    )
    return (
        translation(argument(ESTIMATOR, "dr_grpo"))
        + _kl_of_group(algorithm)
        + _token_mean(options, algorithm)
        + translation(_clip(algorithm.epsilon, algorithm.epsilon_high), approximated=[constant])
    )


def _rloo(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    differences = []
    if algorithm.ratio == "sequence":
        differences.append(
            Difference(
                "algorithm.ratio",
                "sequence",
                "token",
                "OpenRLHF has the ratios of tokens and a mean over them; long completions weigh more",
            )
        )
    if algorithm.kl_weight:
        differences.append(
            Difference(
                "algorithm.kl_weight",
                "the divergence of the whole completion, inside of the baseline",
                "the divergence from each token on, outside of it",
                "OpenRLHF subtracts the baseline before the divergence",
            )
        )
    return (
        translation(argument(ESTIMATOR, "rloo"))
        + _kl_in_reward(algorithm, "k1")
        + _token_mean(options, algorithm)
        + translation(_clip(algorithm.epsilon, algorithm.epsilon_high), approximated=differences)
    )


def _reinforce(estimator: str) -> Callable[[Any, Options, TurnLimits], Translation]:
    def translate(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
        differences = []
        if algorithm.unbiased_std:
            differences.append(_biased("algorithm.unbiased_std"))
        if algorithm.gamma != 1 and estimator != "reinforce":
            differences.append(
                Difference("algorithm.gamma", algorithm.gamma, 1.0, "OpenRLHF discounts only for gae and reinforce")
            )
        elif algorithm.gamma != 1:
            differences += _time(limits, "algorithm.gamma", algorithm.gamma)
        kl = _kl_in_loss if algorithm.kl_in == "loss" else _kl_in_reward
        return (
            translation(argument(ESTIMATOR, estimator), argument("--algo.advantage.gamma", algorithm.gamma))
            + kl(algorithm, algorithm.kl_estimator)
            + _token_mean(options, algorithm)
            + translation(_clip(algorithm.epsilon, algorithm.epsilon_high), approximated=differences)
        )

    return translate


def _biased(key: str) -> Difference:
    return Difference(
        key, True, False, "OpenRLHF divides the variance of a batch of n tokens by n, not n - 1: relative effect 1 / 2n"
    )


def _time(limits: TurnLimits, key: str, wanted: float) -> list[Difference]:
    """Of several turns: OpenRLHF lets time pass over tokens of the environment, with values and rewards of 0."""
    if limits.single:
        return []
    why = "OpenRLHF discounts over the tokens of results too; without effect where gamma and lam are 1"
    return [Difference(key, f"{wanted:g} a sampled token", f"{wanted:g} a token, results included", why)]


def _ppo(algorithm: Any, options: Options, limits: TurnLimits) -> Translation:
    critic = options.critic
    approximated, unsupported = [], []
    if algorithm.whiten and algorithm.unbiased_std:
        approximated.append(_biased("algorithm.unbiased_std"))
    if not algorithm.whiten:
        unsupported.append(
            Difference(
                "algorithm.whiten", False, True, "OpenRLHF always normalises the advantages of gae", refused=True
            )
        )
    if algorithm.gamma != 1 or algorithm.lam != 1:
        approximated += _time(limits, "algorithm.lam", algorithm.lam)
    if algorithm.kl_target is not None:
        unsupported.append(
            Difference(
                "algorithm.kl_target",
                algorithm.kl_target,
                None,
                "OpenRLHF 0.11.2 states that its adaptive controller does not work; the weight stays as it is",
            )
        )
    arguments = [
        argument(ESTIMATOR, "gae"),
        argument("--algo.advantage.gamma", algorithm.gamma),
        argument("--algo.advantage.lambd", algorithm.lam),
        _clip(algorithm.epsilon, algorithm.epsilon_high),
        argument("--critic.value_clip", 1e9 if algorithm.value_clip is None else algorithm.value_clip),
        argument("--critic.adam.lr", critic.learning_rate),
        argument("--critic.adam.betas", *options.betas),
        argument("--critic.adam.weight_decay", critic.weight_decay),
        argument("--critic.lr_scheduler", "constant_with_warmup"),
        argument("--critic.lr_warmup_ratio", warm_up_ratio(critic.warm_up, options)),
        argument("--critic.max_norm", options.clip_norm),
        # The policy is trained in steps after this one, counted from 0; -1 for all.
        argument("--critic.freezing_steps", critic.head_start - 1),
        argument("--critic.num_nodes", critic.nodes or options.nodes),
        argument("--critic.num_gpus_per_node", critic.gpus_per_node or options.gpus_per_node),
    ]
    return (
        translation(*arguments, approximated=approximated, unsupported=unsupported)
        + _kl_in_reward(algorithm, algorithm.kl_estimator)
        + _token_mean(options, algorithm)
    )


_TRANSLATIONS: Final[Mapping[str, Callable[[Any, Options, TurnLimits], Translation]]] = {
    "grpo": _grpo,
    "bn-grpo": _bn_grpo,
    "dapo": _dapo,
    "dr-grpo": _dr_grpo,
    "rloo": _rloo,
    "reinforce++": _reinforce("reinforce"),
    "reinforce++-baseline": _reinforce("reinforce_baseline"),
    "ppo": _ppo,
}


def response_limit(limits: TurnLimits, options: Options) -> int:
    """The most tokens that a response may have, as far as the limits say: what lengths are shaped against."""
    return limits.total_tokens or limits.assistant_turns * (limits.turn_tokens or options.max_new_tokens)


def warm_up_ratio(steps: int, options: Options) -> float:
    """The share of all updates in which a rate rises, so that OpenRLHF's ``ceil(updates * share)`` is what is meant."""
    updates = options.updates
    wanted = min(updates, steps * options.mini_batches * options.iterations)
    if wanted == 0:
        return 0.0
    share = wanted / updates
    return share if math.ceil(updates * share) == wanted else (wanted - 0.5) / updates
