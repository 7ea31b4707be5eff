"""Callwright: a plugin SDK for teaching language models to use tools by reinforcement learning.

Score one string::

    import callwright as cw
    task = cw.corpus("toolworld-mini-v1")["evaluation"][42]
    reward = cw.recipe("tier").score(task, completion_text, ir="json")
    print(reward.total, reward.explain())

Public names are listed in ``__all__`` and loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# First: binds the short functions over the submodules of the same names.
from callwright.short import corpus, environment, parser, recipe, sampler, train
from callwright.tool import tool

__version__ = "0.1.0"

_HOMES = {
    "callwright.errors": (
        "CallwrightError",
        "CannotExpress",
        "ComponentError",
        "DataError",
        "InfrastructureFailure",
        "MissingExtra",
        "NameClash",
        "PluginError",
        "RecipeError",
        "RunError",
        "UnknownName",
        "UsageError",
    ),
    "callwright.hookspecs": ("hookimpl",),
    "callwright.plugins": ("Lazy", "Registry", "default_registry", "load_plugins"),
    "callwright.program": ("Call", "Program", "Reference"),
    "callwright.parser": ("ParseFailure", "ParseLimits", "Parser"),
    "callwright.tool": ("FunctionTool", "ToolError", "ToolSpec"),
    "callwright.schema": ("Mismatch", "Validation", "validate"),
    "callwright.environment": ("Environment", "Outcome", "Session"),
    "callwright.function_environment": ("FunctionEnvironment",),
    "callwright.offering": ("OfferedTool", "offer", "openai_tools"),
    "callwright.paging": ("Cursor", "Limit", "Page", "page"),
    "callwright.rows": ("row",),
    "callwright.stateful": ("Scenario", "StatefulEnvironment", "StatefulSession"),
    "callwright.world": ("Base", "World"),
    "callwright.execution": ("ExecutionRules", "execute"),
    "callwright.trace": ("Step", "Trace"),
    "callwright.corpus": ("Answer", "Corpus", "Task"),
    "callwright.sampler": ("Completion", "Message", "Sampler", "SamplingRequest"),
    "callwright.attempt": ("Attempt", "Progress"),
    "callwright.chat_codec": ("ChatCodec", "PlainCodec"),
    "callwright.conversing": ("converse",),
    "callwright.episode": ("Episode", "Turn"),
    "callwright.executors": ("Work", "make_executor"),
    "callwright.rollout": ("Generated", "Rollout"),
    "callwright.turn_limits": ("TurnLimits",),
    "callwright.answer": ("answers_match", "values_equal"),
    "callwright.reward": ("Evidence", "Reward", "RewardComponent", "RewardRecipe", "Score", "Term", "WeightedScore"),
    "callwright.algorithm": (
        "ActorCritic",
        "AdaptiveKL",
        "Algorithm",
        "EntropyBonus",
        "Experience",
        "LossOutput",
        "TokenBatch",
        "TokenLevel",
        "ValueBatch",
    ),
    "callwright.trainer": ("Trainer",),
    "callwright.synthesizer": ("Synthesizer", "Teacher"),
    "callwright.pipeline_recipe": ("PipelineRecipe", "load_recipe"),
    "callwright.pipeline": ("Pipeline", "build_pipeline"),
    "callwright.evaluation": ("Verdict", "evaluate", "judge", "summarise"),
    "callwright.runs": ("Run",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'callwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)


if TYPE_CHECKING:
    from callwright.algorithm import ActorCritic as ActorCritic
    from callwright.algorithm import AdaptiveKL as AdaptiveKL
    from callwright.algorithm import Algorithm as Algorithm
    from callwright.algorithm import EntropyBonus as EntropyBonus
    from callwright.algorithm import Experience as Experience
    from callwright.algorithm import LossOutput as LossOutput
    from callwright.algorithm import TokenBatch as TokenBatch
    from callwright.algorithm import TokenLevel as TokenLevel
    from callwright.algorithm import ValueBatch as ValueBatch
    from callwright.answer import answers_match as answers_match
    from callwright.answer import values_equal as values_equal
    from callwright.attempt import Attempt as Attempt
    from callwright.attempt import Progress as Progress
    from callwright.chat_codec import ChatCodec as ChatCodec
    from callwright.chat_codec import PlainCodec as PlainCodec
    from callwright.conversing import converse as converse
    from callwright.corpus import Answer as Answer
    from callwright.corpus import Corpus as Corpus
    from callwright.corpus import Task as Task
    from callwright.environment import Environment as Environment
    from callwright.environment import Outcome as Outcome
    from callwright.environment import Session as Session
    from callwright.episode import Episode as Episode
    from callwright.episode import Turn as Turn
    from callwright.errors import CallwrightError as CallwrightError
    from callwright.errors import CannotExpress as CannotExpress
    from callwright.errors import ComponentError as ComponentError
    from callwright.errors import DataError as DataError
    from callwright.errors import InfrastructureFailure as InfrastructureFailure
    from callwright.errors import MissingExtra as MissingExtra
    from callwright.errors import NameClash as NameClash
    from callwright.errors import PluginError as PluginError
    from callwright.errors import RecipeError as RecipeError
    from callwright.errors import RunError as RunError
    from callwright.errors import UnknownName as UnknownName
    from callwright.errors import UsageError as UsageError
    from callwright.evaluation import Verdict as Verdict
    from callwright.evaluation import evaluate as evaluate
    from callwright.evaluation import judge as judge
    from callwright.evaluation import summarise as summarise
    from callwright.execution import ExecutionRules as ExecutionRules
    from callwright.execution import execute as execute
    from callwright.executors import Work as Work
    from callwright.executors import make_executor as make_executor
    from callwright.function_environment import FunctionEnvironment as FunctionEnvironment
    from callwright.hookspecs import hookimpl as hookimpl
    from callwright.offering import OfferedTool as OfferedTool
    from callwright.offering import offer as offer
    from callwright.offering import openai_tools as openai_tools
    from callwright.paging import Cursor as Cursor
    from callwright.paging import Limit as Limit
    from callwright.paging import Page as Page
    from callwright.paging import page as page
    from callwright.parser import ParseFailure as ParseFailure
    from callwright.parser import ParseLimits as ParseLimits
    from callwright.parser import Parser as Parser
    from callwright.pipeline import Pipeline as Pipeline
    from callwright.pipeline import build_pipeline as build_pipeline
    from callwright.pipeline_recipe import PipelineRecipe as PipelineRecipe
    from callwright.pipeline_recipe import load_recipe as load_recipe
    from callwright.plugins import Lazy as Lazy
    from callwright.plugins import Registry as Registry
    from callwright.plugins import default_registry as default_registry
    from callwright.plugins import load_plugins as load_plugins
    from callwright.program import Call as Call
    from callwright.program import Program as Program
    from callwright.program import Reference as Reference
    from callwright.reward import Evidence as Evidence
    from callwright.reward import Reward as Reward
    from callwright.reward import RewardComponent as RewardComponent
    from callwright.reward import RewardRecipe as RewardRecipe
    from callwright.reward import Score as Score
    from callwright.reward import Term as Term
    from callwright.reward import WeightedScore as WeightedScore
    from callwright.rollout import Generated as Generated
    from callwright.rollout import Rollout as Rollout
    from callwright.rows import row as row
    from callwright.runs import Run as Run
    from callwright.sampler import Completion as Completion
    from callwright.sampler import Message as Message
    from callwright.sampler import Sampler as Sampler
    from callwright.sampler import SamplingRequest as SamplingRequest
    from callwright.schema import Mismatch as Mismatch
    from callwright.schema import Validation as Validation
    from callwright.schema import validate as validate
    from callwright.stateful import Scenario as Scenario
    from callwright.stateful import StatefulEnvironment as StatefulEnvironment
    from callwright.stateful import StatefulSession as StatefulSession
    from callwright.synthesizer import Synthesizer as Synthesizer
    from callwright.synthesizer import Teacher as Teacher
    from callwright.tool import FunctionTool as FunctionTool
    from callwright.tool import ToolError as ToolError
    from callwright.tool import ToolSpec as ToolSpec
    from callwright.trace import Step as Step
    from callwright.trace import Trace as Trace
    from callwright.trainer import Trainer as Trainer
    from callwright.turn_limits import TurnLimits as TurnLimits
    from callwright.world import Base as Base
    from callwright.world import World as World

__all__ = [
    "ActorCritic",
    "AdaptiveKL",
    "Algorithm",
    "Answer",
    "Attempt",
    "Base",
    "Call",
    "CallwrightError",
    "CannotExpress",
    "ChatCodec",
    "Completion",
    "ComponentError",
    "Corpus",
    "Cursor",
    "DataError",
    "EntropyBonus",
    "Environment",
    "Episode",
    "Evidence",
    "ExecutionRules",
    "Experience",
    "FunctionEnvironment",
    "FunctionTool",
    "Generated",
    "InfrastructureFailure",
    "Lazy",
    "Limit",
    "LossOutput",
    "Message",
    "Mismatch",
    "MissingExtra",
    "NameClash",
    "OfferedTool",
    "Outcome",
    "Page",
    "ParseFailure",
    "ParseLimits",
    "Parser",
    "Pipeline",
    "PipelineRecipe",
    "PlainCodec",
    "PluginError",
    "Program",
    "Progress",
    "RecipeError",
    "Reference",
    "Registry",
    "Reward",
    "RewardComponent",
    "RewardRecipe",
    "Rollout",
    "Run",
    "RunError",
    "Sampler",
    "SamplingRequest",
    "Scenario",
    "Score",
    "Session",
    "StatefulEnvironment",
    "StatefulSession",
    "Step",
    "Synthesizer",
    "Task",
    "Teacher",
    "Term",
    "TokenBatch",
    "TokenLevel",
    "ToolError",
    "ToolSpec",
    "Trace",
    "Trainer",
    "Turn",
    "TurnLimits",
    "UnknownName",
    "UsageError",
    "Validation",
    "ValueBatch",
    "Verdict",
    "WeightedScore",
    "Work",
    "World",
    "__version__",
    "answers_match",
    "build_pipeline",
    "converse",
    "corpus",
    "default_registry",
    "environment",
    "evaluate",
    "execute",
    "hookimpl",
    "judge",
    "load_plugins",
    "load_recipe",
    "make_executor",
    "offer",
    "openai_tools",
    "page",
    "parser",
    "recipe",
    "row",
    "sampler",
    "summarise",
    "tool",
    "train",
    "validate",
    "values_equal",
]
