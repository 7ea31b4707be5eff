"""A user that a model plays: any registered sampler, told who it is, what it wants and what it knows."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Final

from attrs import evolve

from callwright.environments.capabilities import user_tools_of
from callwright.environments.knowledge.asking import ME
from callwright.episodes.results import as_user_message
from callwright.episodes.sampling import role_of, turn_seed
from callwright.errors import InfrastructureFailure, UsageError
from callwright.language.messages import Message
from callwright.language.parser import Parser
from callwright.language.program import Program
from callwright.language.speech import spoken
from callwright.pickling import ByName
from callwright.plugins import Registry
from callwright.walk.completion import Completion
from callwright.walk.openings.opening import begins_with_user
from callwright.walk.prompt import describe_tools
from callwright.walk.sampling import Sampler, SamplesConcurrently, SamplingRequest, offers_tools
from callwright.walk.tasks import Task
from callwright.walk.users.said import Said
from callwright.walk.users.user import Looks
from callwright_plugins.users.script import in_words
from callwright_plugins.users.signs import read_signs, without_sign

#: The word with which simulated users end a conversation in tau-bench.
STOP: Final = "###STOP###"
#: How the agent is taken to have begun: chat servers want somebody else to speak first.
_GREETING: Final = "Hello! What can I do for you?"
_SILENCE: Final = "(The assistant says nothing.)"
#: The form in which a model without functions of its own writes calls, and in which all calls are read.
_FORM: Final = "hermes"
#: So often in one turn it may call its tools; one that goes on has lost its way, and the sample is masked.
_MOST_ROUNDS: Final = 12
_RULES: Final = (
    "You are a person who writes with an assistant in a chat. You are not the assistant: it works for you.",
    "Write as people write in a chat: short, one thing at a time, without lists and without quotation marks.",
    "Do not tell what you were not asked for. Say only what stands here; what does not, you do not know.",
    "Do not say that you follow instructions, and do not quote them.",
)


class ModelUser(ByName):
    """A user that a sampler plays.

    ``sampler`` is a registered one with ``options`` of its own, or the sampler itself. It is told ``persona`` (who it
    is), ``goal`` (what it wants; the query, if left out) and what it knows: ``knows``, by name, and what the world says
    that ``entities`` know. It is done when it writes ``stop``, or one of several signs: the first is for the end, and
    its goal says what the others are for (such as ``###TRANSFER###`` in tau-bench). ``temperature`` 0 is greedy. Where
    the environment has tools for users, it is offered them: as functions by a sampler that offers tools itself, else in
    its prompt.

    A reply that the server refuses, that is cut off or empty masks the sample; nothing is held against the agent. So
    does a first one with which it begins the conversation and that calls a tool or ends it.
    """

    name: ClassVar[str] = "model"

    def __init__(
        self,
        registry: Registry,
        sampler: str | Sampler,
        options: Mapping[str, Any] | None = None,
        goal: str = "",
        persona: str = "",
        knows: Mapping[str, Any] | None = None,
        entities: Sequence[str] = (ME,),
        stop: str | Sequence[str] = STOP,
        temperature: float = 0.7,
    ) -> None:
        for option, value in (("goal", goal), ("persona", persona)):
            if not isinstance(value, str):
                raise UsageError(f"the option {option!r} of the user 'model' is a text, not {value!r:.80}")
        signs = read_signs(stop, self.name)
        if not signs:
            raise UsageError("the option 'stop' of the user 'model' is a word that ends the conversation, not empty")
        if isinstance(entities, str) or not all(isinstance(one, str) for one in entities):
            raise UsageError(f"the option 'entities' of the user 'model' is a list of names, not {entities!r:.80}")
        for option, given in (("options", options), ("knows", knows)):
            if given is not None and not isinstance(given, Mapping):
                raise UsageError(f"the option {option!r} of the user 'model' is an object, not {given!r:.80}")
        if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature >= 0:
            raise UsageError(f"the option 'temperature' of the user 'model' is 0 or more, not {temperature!r}")
        self._registry, self._sampler, self._options = registry, sampler, dict(options or {})
        if isinstance(sampler, str):
            registry.spec("sampler", sampler)  # a name that is none is said before anything is asked
        elif options:
            raise UsageError("the option 'options' of the user 'model' goes with the name of a sampler")
        self.goal, self.persona, self.signs, self.temperature = goal, persona, signs, float(temperature)
        self.knows, self.entities = dict(knows or {}), tuple(entities)

    @property
    def parser(self) -> Parser:
        """The form in which calls are read."""
        parser: Parser = self._registry.create("parser", _FORM)
        return parser

    def begin(self, task: Task, seed: int) -> _Played:
        """A user at the beginning; what is sampled hangs on the seed."""
        return _Played(self, task, seed)

    def ask(self, request: SamplingRequest, seed: int) -> Completion:
        """One completion. Raises :class:`callwright.InfrastructureFailure` where there is none."""
        sampler, turn = _shared(self._registry, self._sampler, self._options)
        with turn:
            ((completion,),) = sampler.sample([request], n=1, seed=seed, temperature=self.temperature)
        return completion

    @property
    def sampler(self) -> Sampler:
        """Who plays."""
        return _shared(self._registry, self._sampler, self._options)[0]

    def told(self, task: Task, session: Looks, tools: str) -> str:
        """The system message."""
        known = dict(self.knows)
        for entity in self.entities:
            mine = session.knowledge(entity)
            known |= mine if entity == ME else {f"{name} of {entity}": value for name, value in mine.items()}
        parts = ["\n".join(_RULES)]
        if self.persona:
            parts.append(f"# Who you are\n{self.persona}")
        parts.append(f"# What you want\n{self.goal or task.query}")
        if known:
            parts.append("# What you know\n" + "\n".join(f"- {name}: {in_words(known[name])}" for name in known))
        if tools:
            parts.append(tools)
        parts.append(
            f"# The end\nWhen all that you want is done, or you see that it cannot be done, write {self.signs[0]} and "
            "nothing else."
        )
        return "\n\n".join(parts)


class _Played:
    """The user of one episode."""

    def __init__(self, kind: ModelUser, task: Task, seed: int) -> None:
        self._kind, self._task, self._seed = kind, task, seed
        self._system: str | None = None
        self._asked = 0
        self.waits = isinstance(kind.sampler, SamplesConcurrently)

    def reply(self, messages: Sequence[Message], session: Looks) -> Said:
        """What the model writes, as a user."""
        kind = self._kind
        theirs = {name: spec for name, spec in user_tools_of(self._task.environment).items() if not spec.hidden}
        native = offers_tools(kind.sampler)
        begins = self._asked == 0 and begins_with_user(self._task)
        if self._system is None:
            offered = ""
            if theirs and not native:
                listed = "\n".join(describe_tools(theirs.values()))
                offered = f"# What you can do yourself\n{kind.parser.instructions()}\n\nThe tools:\n{listed}"
            self._system = kind.told(self._task, session, offered)
        greeting = () if messages and messages[0].role == "assistant" else (Message.user(_GREETING),)
        shown = (Message.system(self._system), *greeting, *self._seen(messages, native))
        offered_now = {} if begins else theirs  # what it wants comes first, in words
        request = SamplingRequest(shown, evolve(self._task, tools=offered_now, user=None), parser=kind.parser)
        seed = turn_seed(self._seed, self._asked)
        self._asked += 1
        completion = kind.ask(request, seed)
        if completion.masked is not None:
            raise InfrastructureFailure(f"the user {kind.name!r} was not answered: {completion.masked}")
        if completion.truncated:
            raise InfrastructureFailure(f"what the user {kind.name!r} wrote was cut off at the limit of its length")
        said = self._said(completion, bool(theirs), _rounds(messages))
        if begins and (said.calls or said.done):
            what = "called a tool" if said.calls else "ended the conversation"
            raise InfrastructureFailure(f"the user {kind.name!r} {what} before it said what it wants")
        return said

    def _said(self, completion: Completion, has_tools: bool, rounds: int) -> Said:
        kind = self._kind
        program = kind.parser.parse(completion.text) if has_tools else Program()
        if not isinstance(program, Program):
            raise InfrastructureFailure(f"the user {kind.name!r} wrote a call that cannot be read: {program.message}")
        if program.calls:
            if rounds >= _MOST_ROUNDS:
                raise InfrastructureFailure(f"the user {kind.name!r} called tools {rounds} times and said nothing")
            return Said(calls=program.calls, usage=completion.usage)
        text = spoken(program, completion)
        words, sign = without_sign(text, kind.signs)
        if not words and not sign:
            raise InfrastructureFailure(f"the user {kind.name!r} wrote nothing")
        return Said(words, done=bool(sign), sign=sign, usage=completion.usage)

    def _seen(self, messages: Sequence[Message], native: bool) -> tuple[Message, ...]:
        """The conversation as the model has it, which plays the user: its own words are those of the assistant."""
        seen: list[Message] = []
        for message in messages:
            if message.role == "tool":
                seen.append(message)
            elif message.role == "assistant":
                seen.append(Message.user(message.text.strip() or _SILENCE))
            elif message.tool_calls:
                seen.append(self._called(message, native))
            else:
                seen.append(Message.assistant(message.text))
        return tuple(seen) if native or role_of(self._kind.sampler) == "tool" else as_user_message(seen)

    def _called(self, message: Message, native: bool) -> Message:
        if native:
            return Message.assistant("", message.tool_calls)
        lines = [
            json.dumps({"name": call.name, "arguments": json.loads(call.arguments)}, ensure_ascii=False)
            for call in message.tool_calls
        ]
        return Message.assistant("\n".join(f"<tool_call>\n{line}\n</tool_call>" for line in lines))


def _rounds(messages: Sequence[Message]) -> int:
    """How often the user has called something since the agent spoke."""
    rounds = 0
    for message in reversed(messages):
        if message.role == "assistant":
            break
        rounds += bool(message.tool_calls)
    return rounds


# Samplers that users share --------------------------------------------------------------------------------------------


#: No turn to wait for: a sampler of a server is asked from many threads.
_FREE: Final = nullcontext()
_Shared = tuple[Sampler, AbstractContextManager[Any]]
_made: Final[weakref.WeakKeyDictionary[Registry, dict[str, _Shared]]] = weakref.WeakKeyDictionary()
_guard: Final = threading.Lock()


def _shared(registry: Registry, sampler: str | Sampler, options: Mapping[str, Any]) -> _Shared:
    """The sampler and whose turn it is: one for all users that name it with the same options, so that their limits hold
    for all of them.
    """
    if not isinstance(sampler, str):
        return sampler, _FREE
    key = json.dumps([sampler, options], sort_keys=True, default=repr)
    with _guard:
        known = _made.setdefault(registry, {})
        found = known.get(key)
        if found is None:
            made: Sampler = registry.create("sampler", sampler, **options)
            turn: AbstractContextManager[Any] = _FREE if isinstance(made, SamplesConcurrently) else threading.Lock()
            found = known[key] = made, turn
        return found
