"""Tools of an environment as verl's, for its own loop of tool calls."""

from __future__ import annotations

import json
import weakref
from typing import Any, ClassVar, Final
from uuid import uuid4

from verl.tools.base_tool import BaseTool
from verl.tools.schemas import (
    OpenAIFunctionParametersSchema,
    OpenAIFunctionSchema,
    OpenAIFunctionToolSchema,
    ToolResponse,
)

from callwright.environments.hazards.policy import read_hazards
from callwright.environments.living.policy import read_policy
from callwright.environments.protocol import Environment
from callwright.episodes.results import describe_step
from callwright.errors import UnknownName, UsageError
from callwright.language.program import Call, Program
from callwright.pipeline import event_caller
from callwright.plugins import default_registry
from callwright.tools.spec import ToolSpec
from callwright.walk.conditions import Conditions
from callwright.walk.execution import Execution
from callwright.walk.tasks import Answer, Task

#: As every trainer has it: foreign tools in processes that can be killed.
_ISOLATION: Final = "auto"


class WholeParameters(OpenAIFunctionParametersSchema):  # type: ignore[misc]
    """verl's own class knows type, description and enumeration of a parameter and drops the rest of its schema."""

    model_config: ClassVar[Any] = {"extra": "allow"}
    properties: dict[str, Any]


class WholeFunction(OpenAIFunctionSchema):  # type: ignore[misc]
    """A function with the whole schema of its parameters."""

    parameters: WholeParameters


class WholeSchema(OpenAIFunctionToolSchema):  # type: ignore[misc]
    """A tool with the whole schema of its parameters."""

    function: WholeFunction


def whole_schema(spec: ToolSpec) -> WholeSchema:
    """The schema of a tool as a model is shown it."""
    shown: WholeSchema = WholeSchema.model_validate(spec.to_openai())
    return shown


class EnvironmentTool(BaseTool):  # type: ignore[misc]
    """One tool of a registered environment.

    ``config`` names ``environment`` and ``tool``, and may hold ``options`` of the environment: where a server of MCP or
    of OpenEnv is. Tools of the same environment with the same options share it. verl makes an instance for every call
    and releases it after it; where it says which conversation a call belongs to (``agent_data``), all tools of an
    environment share one session in it. Otherwise a session belongs to the instance. ``create_kwargs`` (from the row's
    ``tools_kwargs``) are the session's ``scenario``, ``seed``, and as JSON text ``clock``
    (:class:`callwright.environments.ClockPolicy`) and ``hazards``
    (:class:`callwright.environments.hazards.policy.Hazards`).
    """

    #: By name and options, so that the tools of a server do not start one each.
    _environments: ClassVar[dict[str, Environment]] = {}
    #: Sessions of conversations, by name and options of their environment.
    _conversations: ClassVar[weakref.WeakKeyDictionary[Any, dict[str, Execution]]] = weakref.WeakKeyDictionary()

    def __init__(self, config: dict[str, Any], tool_schema: Any = None) -> None:
        named, options = str(config.get("environment")), dict(config.get("options") or {})
        self._place = json.dumps([named, options], sort_keys=True)
        if self._place not in self._environments:
            self._environments[self._place] = default_registry().create("environment", named, **options)
        self.environment = self._environments[self._place]
        name = str(config.get("tool"))
        if name not in self.environment.tools or self.environment.tools[name].hidden:
            raise UnknownName(f"tool of {self.environment.name}", name, self.environment.tools)
        self.spec = self.environment.tools[name]
        self._conditions = Conditions(caller=event_caller(default_registry()), isolation=_ISOLATION)
        self._opening: dict[str, Task] = {}
        self._sessions: dict[str, Execution] = {}
        super().__init__(config, tool_schema or whole_schema(self.spec))

    def get_openai_tool_schema(self) -> Any:
        """The tool's own schema."""
        return whole_schema(self.spec)

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, Any]:
        """An instance; its session is opened when it is first called."""
        instance = instance_id or str(uuid4())
        given = kwargs.get("create_kwargs") or {}
        clock, hazards = given.get("clock"), given.get("hazards")
        self._opening[instance] = Task(
            "free",
            "",
            self.environment.tools,
            Answer(),
            self.environment,
            scenario=str(given.get("scenario") or ""),
            seed=int(given.get("seed") or 0),
            clock=read_policy(json.loads(clock)) if clock else None,
            hazards=read_hazards(json.loads(hazards)) if hazards else None,
        )
        return instance, ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[Any, float, dict[str, Any]]:
        """Execute a call; a result is the JSON that every rollout of Callwright shows.

        verl has no way to mask a conversation whose machinery failed: the model reads that as an error of the tool.
        """
        execution = self._execution(instance_id, kwargs.get("agent_data"))
        arguments = dict(parameters) if isinstance(parameters, dict) else {"": parameters}
        record = execution.run(Program((Call(0, self.spec.name, arguments),))).records[0]
        return ToolResponse(text=describe_step(record)), 0.0, {"executed": float(record.outcome.executed)}

    async def calc_reward(self, instance_id: str, **kwargs: Any) -> float:
        """0.0: rewards are those of recipes."""
        return 0.0

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """Close the session of the instance; that of a conversation is closed with it."""
        self._opening.pop(instance_id, None)
        session = self._sessions.pop(instance_id, None)
        if session is not None:
            session.close()

    def _execution(self, instance: str, conversation: Any) -> Execution:
        if instance not in self._opening:
            raise UsageError(f"the instance {instance!r} of {self.spec.name!r} was not created, or is released")
        task = self._opening[instance]
        if conversation is None:
            if instance not in self._sessions:
                self._sessions[instance] = self._conditions.execution(task)
            return self._sessions[instance]
        own = self._conversations.setdefault(conversation, {})
        if self._place not in own:
            execution = own[self._place] = self._conditions.execution(task)
            weakref.finalize(conversation, execution.close)
        return own[self._place]
