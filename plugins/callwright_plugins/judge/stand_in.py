"""What the conformance kit checks in place of a live judge: the same component over verdicts that nobody asked for."""

from __future__ import annotations

from callwright.plugins import default_registry
from callwright.walk.reward import RewardRecipe
from callwright_plugins.judge.component import Judge
from callwright_plugins.judge.recipes import judge as recipe_of_judge
from callwright_plugins.judge.recipes import tier_judged
from callwright_plugins.judge.stand_in_teacher import StandInTeacher


def judge() -> Judge:
    """The component."""
    return Judge(default_registry(), teacher=StandInTeacher())


def judge_recipe() -> RewardRecipe:
    """The recipe ``judge``."""
    return recipe_of_judge(default_registry(), teacher=StandInTeacher())


def tier_judged_recipe() -> RewardRecipe:
    """The recipe ``tier-judged``."""
    return tier_judged(default_registry(), teacher=StandInTeacher())
