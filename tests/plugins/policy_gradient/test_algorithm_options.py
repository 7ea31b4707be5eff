"""Options from a recipe: what is taken, and what is said about the rest."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from callwright import UsageError
from callwright.option_listing import options_of
from callwright.plugins import load_plugins
from callwright_plugins import policy_gradient

registry = load_plugins(extra={"policy-gradient": policy_gradient}, entry_points=False)


def test_defaults_are_the_papers() -> None:
    grpo, bn_grpo, dapo = (registry.create("algorithm", name) for name in ("grpo", "bn-grpo", "dapo"))
    assert (grpo.epsilon, grpo.kl_weight, grpo.std, grpo.std_epsilon) == (0.2, 0.04, "group", 1e-4)
    assert (bn_grpo.epsilon, bn_grpo.kl_weight, bn_grpo.std, bn_grpo.std_epsilon) == (0.2, 0.04, "group", 1e-4)
    assert not grpo.unbiased_kl
    assert not bn_grpo.unbiased_kl
    assert (dapo.epsilon_low, dapo.epsilon_high, dapo.kl_weight) == (0.2, 0.28, 0.0)
    assert (dapo.dynamic_sampling, dapo.overlong_buffer, dapo.overlong_penalty) == (True, None, 1.0)


def test_ppo_is_toolrl_s() -> None:
    """Table 9 gives the KL weight; the rest are verl's defaults, with which it was run."""
    ppo = registry.create("algorithm", "ppo")
    assert (ppo.kl_weight, ppo.kl_estimator, ppo.kl_target) == (0.001, "k1", None)
    assert (ppo.gamma, ppo.lam, ppo.epsilon, ppo.epsilon_high, ppo.value_clip) == (1.0, 1.0, 0.2, None, 0.5)
    assert (ppo.whiten, ppo.unbiased_std, ppo.entropy_weight) == (True, True, 0.0)


def test_whole_numbers_of_a_recipe_become_floats() -> None:
    algorithm = registry.create("algorithm", "grpo", kl_weight=0, epsilon_high=1)
    assert (type(algorithm.kl_weight), type(algorithm.epsilon_high)) == (float, float)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "grpo",
            {"epsilon": 0},
            "the algorithm 'grpo': 'epsilon' must be a number greater than 0 and less than 1, but is 0.0",
        ),
        (
            "grpo",
            {"epsilon": 1.0},
            "the algorithm 'grpo': 'epsilon' must be a number greater than 0 and less than 1, but is 1.0",
        ),
        (
            "grpo",
            {"epsilon": True},
            "the algorithm 'grpo': 'epsilon' must be a number greater than 0 and less than 1, but is True",
        ),
        (
            "bn-grpo",
            {"epsilon_high": -0.1},
            "the algorithm 'bn-grpo': 'epsilon_high' must be a number greater than 0, but is -0.1",
        ),
        (
            "bn-grpo",
            {"kl_weight": -1},
            "the algorithm 'bn-grpo': 'kl_weight' must be a number of at least 0, but is -1.0",
        ),
        (
            "bn-grpo",
            {"kl_weight": "0.04"},
            "the algorithm 'bn-grpo': 'kl_weight' must be a number of at least 0, but is '0.04'",
        ),
        (
            "bn-grpo",
            {"std_epsilon": float("nan")},
            "the algorithm 'bn-grpo': 'std_epsilon' must be a number of at least 0, but is nan",
        ),
        (
            "grpo",
            {"kl_weight": float("inf")},
            "the algorithm 'grpo': 'kl_weight' must be a number of at least 0, but is inf",
        ),
        (
            "grpo",
            {"std": "prompt"},
            "the algorithm 'grpo': 'std' must be 'group', 'population', 'batch' or 'none', but is 'prompt'",
        ),
        (
            "grpo",
            {"std": ["group"]},
            r"the algorithm 'grpo': 'std' must be 'group', 'population', 'batch' or 'none', but is \['group'\]",
        ),
        ("grpo", {"unbiased_kl": 1}, "the algorithm 'grpo': 'unbiased_kl' must be true or false, but is 1"),
        (
            "dapo",
            {"overlong_buffer": 1.5},
            "the algorithm 'dapo': 'overlong_buffer' must be a whole number, 0 or more, but is 1.5",
        ),
        (
            "dapo",
            {"overlong_buffer": -1},
            "the algorithm 'dapo': 'overlong_buffer' must be a whole number, 0 or more, but is -1",
        ),
        (
            "dapo",
            {"overlong_buffer": False},
            "the algorithm 'dapo': 'overlong_buffer' must be a whole number, 0 or more, but is False",
        ),
        (
            "dapo",
            {"dynamic_sampling": "yes"},
            "the algorithm 'dapo': 'dynamic_sampling' must be true or false, but is 'yes'",
        ),
        ("dapo", {"ratio": "response"}, "There is no option of the algorithm 'dapo' named 'ratio'"),
        (
            "dr-grpo",
            {"max_length": 0},
            "the algorithm 'dr-grpo': 'max_length' must be a whole number, 1 or more, but is 0",
        ),
        ("rloo", {"ratio": "word"}, "the algorithm 'rloo': 'ratio' must be 'sequence' or 'token', but is 'word'"),
        ("reinforce++", {"gamma": 1.5}, "'gamma' must be a number greater than 0 and of at most 1, but is 1.5"),
        ("reinforce++", {"kl_in": "loss"}, 'kl_estimator = "k1" has no gradient on average in the loss'),
        (
            "ppo",
            {"lam": -0.1},
            "the algorithm 'ppo': 'lam' must be a number of at least 0 and of at most 1, but is -0.1",
        ),
        ("ppo", {"value_clip": 0}, "the algorithm 'ppo': 'value_clip' must be a number greater than 0, but is 0.0"),
        ("ppo", {"kl_estimator": "k4"}, "the algorithm 'ppo': 'kl_estimator' must be 'k1', 'k2' or 'k3', but is 'k4'"),
        (
            "ppo",
            {"entropy_weight": -1},
            "the algorithm 'ppo': 'entropy_weight' must be a number of at least 0, but is -1.0",
        ),
        ("grpo", {"klweight": 0.1}, "Did you mean 'kl_weight'"),
        ("grpo", {"name": "mine"}, "There is no option of the algorithm 'grpo' named 'name'"),
    ],
)
def test_a_wrong_option_is_named(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        registry.create("algorithm", name, **options)


def test_torch_is_not_imported_before_an_algorithm_is_made() -> None:
    program = (
        "import sys; from callwright.plugins import load_plugins; from callwright_plugins import policy_gradient; "
        "load_plugins(extra={'policy-gradient': policy_gradient}, entry_points=False).names('algorithm'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_wrong_options_are_told_before_torch_or_the_algorithm_is_imported() -> None:
    program = (
        "import sys; from callwright.errors import SeveralMistakes; from callwright.plugins import load_plugins\n"
        "from callwright_plugins import policy_gradient\n"
        "registry = load_plugins(extra={'policy-gradient': policy_gradient}, entry_points=False)\n"
        "try: registry.create('algorithm', 'ppo', lam=2, gama=1)\n"
        "except SeveralMistakes as error: print(error)\n"
        "sys.exit('torch' in sys.modules or 'callwright_plugins.policy_gradient.ppo' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "'lam' must be a number of at least 0 and of at most 1, but is 2.0" in done.stdout
    assert "Did you mean 'gamma'" in done.stdout


@pytest.mark.parametrize("name", registry.names("algorithm"))
def test_the_table_is_what_the_algorithm_takes(name: str) -> None:
    """Names and defaults of the table are those of the class, which can be made without a registry, too."""
    spec = registry.spec("algorithm", name)
    made = spec.load()()
    options = {option.name: option.default for option in options_of(spec)}
    assert options == {key: repr(getattr(made, key)) for key in inspect.signature(spec.load()).parameters}


def test_an_algorithm_made_in_python_has_the_same_rules() -> None:
    from callwright_plugins.policy_gradient.grpo import GRPO

    assert type(GRPO(kl_weight=0).kl_weight) is float
    with pytest.raises(UsageError, match=r"grpo: epsilon must be a number .*, but is 2\.0"):
        GRPO(epsilon=2)
