"""A session of the gateway: one episode of an agent that nobody changed, with its world and its branches of ids."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, field, frozen

from callwright.episodes.codec import ChatCodec
from callwright.episodes.gateway.branches import Branch, GatewayTurn, difference
from callwright.episodes.gateway.chat_answer import ChatAnswer, message_of, with_new_ids
from callwright.episodes.gateway.chat_request import ChatRequest, Refusal
from callwright.episodes.gateway.engines import Asked
from callwright.episodes.logs.log import Log
from callwright.episodes.token_episode import EngineOutput
from callwright.episodes.token_line import TokenLine
from callwright.errors import DataError, InfrastructureFailure
from callwright.language.messages import Message
from callwright.language.native import turn_text
from callwright.walk.attempt import Attempt
from callwright.walk.completion import Completion
from callwright.walk.limits import limits_for
from callwright.walk.prompt import with_listed_tools
from callwright.walk.tasks import Task

if TYPE_CHECKING:
    from callwright.episodes.gateway.gateway import Gateway

#: The share of sampled tokens without loss from which on a person is told.
WORTH_A_WARNING: Final = 0.05


@frozen
class TrainedBranch:
    """A branch as a trainer takes it. ``parent`` is the number of the branch that it parts from, at ``forked_at``.

    ``prompt_ids``; ``response_ids`` and, of the same length ``[L]``, ``mask`` (1: sampled here, and carries loss) and
    ``logprobs`` (nats; empty where the engine gave none). Ids that it shares with its parent have mask 0: they are
    trained there. ``turns`` are the numbers of its own answers.
    """

    role: str
    prompt_ids: tuple[int, ...] = field(repr=False)
    response_ids: tuple[int, ...] = field(repr=False)
    mask: tuple[int, ...] = field(repr=False)
    logprobs: tuple[float, ...] = field(repr=False)
    turns: tuple[int, ...]
    parent: int | None = None
    forked_at: int | None = None


@frozen
class GatewayTrajectory:
    """What one agent did: its branches share one place in a group and one advantage, since there is one reward.

    ``attempt`` is scored by any reward. ``findings`` are what a person should know, a sentence each. ``sampled`` are
    all sampled tokens, ``without_loss`` those of them that are not trained on.
    """

    name: str
    task: Task = field(repr=False)
    attempt: Attempt = field(repr=False)
    branches: tuple[TrainedBranch, ...]
    findings: tuple[str, ...] = ()
    sampled: int = 0
    without_loss: int = 0

    @property
    def share_without_loss(self) -> float:
        """Of the sampled tokens, in [0, 1]."""
        return self.without_loss / self.sampled if self.sampled else 0.0


class GatewaySession:
    """One agent's session; :meth:`.gateway.Gateway.open` makes it. It belongs to the event loop of the gateway."""

    def __init__(self, gateway: Gateway, name: str, task: Task, seed: int, log: Log) -> None:
        self.name, self.task, self.seed, self.log = name, task, seed, log
        self._gateway = gateway
        self._limits = limits_for(task.facts, gateway.conditions.limits)
        self._branches: list[Branch] = []
        self._findings: list[str] = []
        #: Answers by branch and place, those under way and those given.
        self._under_way: dict[tuple[int, int], asyncio.Future[GatewayTurn]] = {}
        self._asked = self._calls = 0
        self._requests = 0
        self._entry = asyncio.Lock()
        self._closing: asyncio.Future[GatewayTrajectory] | None = None
        self._finished: GatewayTrajectory | None = None
        self._lists_tools = False
        #: Whether an answer was refused because the limit of turns was reached.
        self.at_limit = False
        self.last_used = time.monotonic()

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation of the branch that was begun last, as the model has it."""
        entries = self._branches[-1].entries if self._branches else ()
        return tuple(entry.message if isinstance(entry, GatewayTurn) else entry for entry in entries)

    def said_up_to(self, answer: str) -> tuple[Message, ...] | None:
        """The conversation up to an answer, by its id; ``None`` if it is not of this session."""
        for branch in self._branches:
            for place, entry in enumerate(branch.entries):
                if isinstance(entry, GatewayTurn) and entry.answer.id == answer:
                    before = branch.entries[: place + 1]
                    return tuple(one.message if isinstance(one, GatewayTurn) else one for one in before)
        return None

    # Where it is -------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """What an agent takes for the base URL of its model server."""
        return f"{self._gateway.url}/s/{self.name}/v1"

    @property
    def anthropic_url(self) -> str:
        """The same for clients of Anthropic's protocol, which ask ``/v1/messages`` below it."""
        return f"{self._gateway.url}/s/{self.name}"

    def url_for(self, role: str) -> str:
        """The base URL of one of several agents in the session."""
        return f"{self._gateway.url}/s/{self.name}/a/{role}/v1"

    @property
    def tools_url(self) -> str:
        """Where ``POST /NAME`` with the arguments as JSON calls a tool of the session's world."""
        return f"{self._gateway.url}/s/{self.name}/tools"

    @property
    def mcp_url(self) -> str:
        """Where the tools of the session's world are for a client of MCP (streamable HTTP)."""
        return f"{self._gateway.url}/s/{self.name}/mcp"

    @property
    def finished(self) -> GatewayTrajectory | None:
        """What it came to, once it is finished: later requests are refused with status 410."""
        return self._finished

    @property
    def turns(self) -> tuple[GatewayTurn, ...]:
        """Every answer that was sampled, in the order of the requests."""
        found = {id(turn): turn for branch in self._branches for turn in branch.own_turns}
        return tuple(sorted(found.values(), key=lambda turn: turn.number))

    # Answers -----------------------------------------------------------------------------------------------------

    async def answer(self, request: ChatRequest, role: str = "") -> GatewayTurn:
        """The answer to a request, sampled or, where the same was asked before and nobody has read it, the same.

        Raises :class:`.chat_request.Refusal`.
        """
        if self._closing is not None:  # an answer that is sampled from now on would be in nobody's trajectory
            raise Refusal(410, f"the session {self.name!r} is finished", code="session_finished")
        self.last_used = time.monotonic()
        self._requests += 1
        async with self._entry:  # which branch it is of is decided for one request at a time
            branch, asked_before = self._place(request, role)
            if asked_before is not None:
                self._find(f"request {self._requests} repeats an earlier one, and got the same answer")
                waiting: asyncio.Future[GatewayTurn] = asked_before
            else:
                place = id(branch), len(branch.entries)
                number, self._asked = self._asked, self._asked + 1
                waiting = self._under_way[place] = asyncio.ensure_future(self._sample(branch, request, number))
                waiting.add_done_callback(lambda done: self._forget_failed(place, done))
        try:
            return await asyncio.shield(waiting)
        except InfrastructureFailure as error:
            raise Refusal(503, str(error), code="engine_failed") from error

    def _forget_failed(self, place: tuple[int, int], done: asyncio.Future[GatewayTurn]) -> None:
        """A question that failed may be asked again."""
        if done.cancelled() or done.exception() is not None:
            self._under_way.pop(place, None)

    def _place(self, request: ChatRequest, role: str) -> tuple[Branch, asyncio.Future[GatewayTurn] | None]:
        """The branch that a request goes on in, ready for sampling; or the answer that it was given before.

        Raises :class:`.chat_request.Refusal` for a new question where the session has had all of its answers.
        """
        messages = request.messages
        known = [one for one in self._branches if one.role == role and one.tools_key == request.tools_key]
        shared = {id(one): one.shared_with(messages) for one in known}
        for one in reversed(known):  # the newest first: forks share their parents' entries
            count = shared[id(one)]
            if count == len(messages):
                again = self._under_way.get((id(one), count))
                turn = one.entries[count] if count < len(one.entries) else None
                if again is not None and not (isinstance(turn, GatewayTurn) and turn.read):
                    return one, again
        most = self._limits.assistant_turns
        if len(self._under_way) >= most:  # an answer that failed is none
            self.at_limit = True
            self._find(f"the agent asked for more than the {most} answers of a session")
            raise Refusal(400, f"the session has had the {most} answers that it may have", code="turn_limit")
        best = max(reversed(known), key=lambda one: shared[id(one)], default=None)
        count = 0 if best is None else shared[id(best)]
        if best is not None and count == len(best.entries) and (id(best), count) not in self._under_way:
            branch = self._continued(best, messages, count)
        else:
            branch = self._parted(best, messages, count, request, role)
        for entry, message in zip(branch.entries, messages, strict=False):
            if isinstance(entry, GatewayTurn):
                self._echoed(entry, message)
        return branch, None

    def _continued(self, branch: Branch, messages: Sequence[Message], count: int) -> Branch:
        following = messages[count:]
        if any(message.role == "assistant" for message in following):
            return self._parted(branch, messages, count, None, branch.role)
        self._hear(branch, following)
        return branch

    def _parted(
        self, best: Branch | None, messages: Sequence[Message], count: int, request: ChatRequest | None, role: str
    ) -> Branch:
        """A branch of its own: forked after the last answer that is shared, or begun with a prompt of its own."""
        tools_key = request.tools_key if request is not None else best.tools_key if best is not None else "[]"
        at = 0 if best is None else best.last_turn_within(count)
        following = messages[at:]
        if best is not None and at and not any(message.role == "assistant" for message in following):
            turn = best.entries[at - 1]
            assert isinstance(turn, GatewayTurn)
            branch = Branch(role, tools_key, best.line.fork(turn.end), list(best.entries[:at]), best, turn.end)
            self._find(f"request {self._requests} parts from the conversation after answer {turn.number}")
            self._hear(branch, following)
        else:
            self._explain(best, messages, count, tools_key, role)
            branch = Branch(role, tools_key, TokenLine(self._prompt(messages, request, tools_key)), list(messages))
        self._branches.append(branch)
        return branch

    def _prompt(self, messages: Sequence[Message], request: ChatRequest | None, tools_key: str) -> tuple[int, ...]:
        codec = self._gateway.codec
        if codec is None:
            return ()
        tools = request.tools if request is not None else ()
        name = f"the messages of session {self.name!r}"
        try:
            if not tools:
                return codec.conversation_ids(messages, name=name)
            if self._gateway.codec_with_tools is not None and not self._lists_tools:
                try:
                    return self._gateway.codec_with_tools.conversation_ids(messages, tools, name=name)
                except DataError:
                    codec.conversation_ids(messages, name=name)  # what is wrong without tools, too, is said as it is
            if not self._lists_tools:
                self._find("the model has no template that shows tools: they are listed in the system message")
            self._lists_tools = True
            return codec.conversation_ids(with_listed_tools(messages, tools, self._gateway.parser), name=name)
        except DataError as error:
            raise Refusal(400, str(error), code="template") from error

    def _hear(self, branch: Branch, following: Sequence[Message]) -> None:
        """What the model reads after its last answer."""
        codec = self._gateway.codec
        if codec is not None and following:
            last = branch.turns[-1]
            sampled = branch.line.response_ids[last.start : last.end]
            try:
                branch.line.heard(codec.observation_ids((), sampled, following))
            except DataError as error:
                raise Refusal(400, str(error), code="template") from error
        branch.entries += following

    async def _sample(self, branch: Branch, request: ChatRequest, number: int) -> GatewayTurn:
        """Ask the engine, and add its answer to the branch."""
        gateway = self._gateway
        if request.temperature is not None and request.temperature != gateway.temperature:
            self._find(
                f"the client asks for temperature {request.temperature}, and gets {gateway.temperature}, the gateway's"
            )
        created, name = int(time.time()), f"chatcmpl-{self.name}-{number}"
        asked_of_a_server = gateway.codec is None
        if asked_of_a_server:
            completion, answer, ids = await self._ask_server(request, name, created)
        else:
            completion, answer, ids = await self._ask_engine(branch, request, number, name, created)
        start = len(branch.line)
        branch.line.sampled(ids, completion.logprobs)
        turn = GatewayTurn(number, completion, answer, start, len(branch.line), not asked_of_a_server)
        branch.entries.append(turn)
        return turn

    async def _ask_engine(
        self, branch: Branch, request: ChatRequest, number: int, name: str, created: int
    ) -> tuple[Completion, ChatAnswer, tuple[int, ...]]:
        gateway, codec = self._gateway, self._gateway.codec
        assert codec is not None
        room = self._limits.room(len(branch.line.prompt_ids), len(branch.line))[0]
        bounds = [bound for bound in (room, request.max_tokens) if bound is not None]
        if min(bounds, default=1) < 1:
            raise Refusal(400, "the conversation leaves no room for an answer", code="context_length_exceeded")
        asked = Asked(
            branch.line.context,
            min(bounds, default=None),
            evolve(gateway.conditions, seed=self.seed),
            range(number),
            {spec.name: spec for spec in request.tools},
        )
        output = await gateway.continue_one(asked)
        ids, logprobs, text, stopped = _until(codec, output, request.stop)
        whole = codec.prefix_text + text if codec.prefix_text else text
        truncated = not output.finished and not stopped
        message = message_of(whole if not stopped else _before(whole, request.stop), gateway.parser, self._new_id)
        finish = "length" if truncated else "tool_calls" if message.tool_calls else "stop"
        if stopped:
            self._find("a stop string of the client ended an answer: the client was given the text before it")
        usage = {"prompt_tokens": len(asked.context), "completion_tokens": len(ids)}
        usage["total_tokens"] = sum(usage.values())
        shown = tuple((codec.text([one]), value) for one, value in zip(ids, logprobs, strict=False))
        answer = ChatAnswer(name, request.model or gateway.model, created, message, finish, usage, shown)
        return Completion(whole, ids, logprobs, truncated, message=message), answer, ids

    async def _ask_server(
        self, request: ChatRequest, name: str, created: int
    ) -> tuple[Completion, ChatAnswer, tuple[int, ...]]:
        """An answer in words, of which no id is known."""
        given = {
            key: value
            for key, value in request.body.items()
            if key not in ("messages", "model", "stream", "stream_options", "n")
        }
        body = await self._gateway.ask_server([message.to_openai() for message in request.messages], given)
        if not body.get("choices"):
            raise InfrastructureFailure("the server behind the gateway answered without a choice")
        choice = body["choices"][0]
        message = with_new_ids(Message.from_openai({**choice["message"], "role": "assistant"}), self._new_id)
        finish = str(choice.get("finish_reason") or "stop")
        usage = {key: value for key, value in (body.get("usage") or {}).items() if isinstance(value, int)}
        text = turn_text(message, self._gateway.parser, native=True, truncated=finish == "length")
        answer = ChatAnswer(name, request.model or self._gateway.model, created, message, finish, usage)
        return Completion(text, truncated=finish == "length", message=message), answer, ()

    def _new_id(self) -> str:
        self._calls += 1
        return f"call_{self.name}_{self._calls}"

    # Findings ----------------------------------------------------------------------------------------------------

    def _find(self, told: str) -> None:
        if told not in self._findings:
            self._findings.append(told)

    def _echoed(self, turn: GatewayTurn, message: Message) -> None:
        """A later request went on from an answer: it was read, and perhaps rewritten."""
        turn.read = True
        if turn.message.thought and not message.thought:
            self._find("the client drops the model's thoughts; the ids keep them")
        sent = {call.id: call for call in message.tool_calls}
        for call in turn.message.tool_calls:
            told = sent.get(call.id)
            if told is None or told.arguments == call.arguments:
                continue
            if _json(told.arguments) == _json(call.arguments) is not None:
                self._find(
                    "the client rewrites the arguments of calls (the same values); the ids keep the sampled text"
                )
            else:
                self._find(
                    f"the client changed the arguments of {call.id}: {call.arguments:.80} became {told.arguments:.80}"
                )

    def _explain(self, best: Branch | None, messages: Sequence[Message], count: int, tools_key: str, role: str) -> None:
        """Why a conversation begins anew."""
        mine = [one for one in self._branches if one.role == role]
        if not mine:
            return
        head = f"request {self._requests} begins a branch of its own"
        if best is None:
            self._find(f"{head}: the list of tools is another one")
        elif count < min(len(messages), len(best.entries)):
            was, now = best.entries[count], messages[count]
            if isinstance(was, GatewayTurn):
                self._find(f"{head}: message {count} is not what the model wrote")
            elif was.role == now.role:
                what = (
                    "the system prompt changes" if was.role in ("system", "developer") else "the history was rewritten"
                )
                self._find(f"{head}: {what} (message {count}: {difference(was, now)})")
            else:
                self._find(
                    f"{head}: message {count} was a {was.role}'s and is a {now.role}'s: the history was compacted"
                )
        else:
            self._find(f"{head}: it holds answers that the model never gave")

    # The end -----------------------------------------------------------------------------------------------------

    async def finish(self, answer: str | None = None, *, masked: str | None = None) -> GatewayTrajectory:
        """Wait for what is under way, close the session and return what happened; later requests get status 410.

        ``answer`` is what the agent returned in the end, where it says more than the last message. ``masked`` is why
        the session must not be trained on, such as an agent that died.
        """
        if self._closing is None:  # the gateway's watch over unused sessions may close it at the same time
            self._closing = asyncio.ensure_future(self._close(answer, masked))
        return await asyncio.shield(self._closing)

    async def _close(self, answer: str | None, masked: str | None) -> GatewayTrajectory:
        await asyncio.gather(*self._under_way.values(), return_exceptions=True)
        try:
            return self._come_to(answer, masked)
        finally:
            self.log.close()

    def _come_to(self, answer: str | None, masked: str | None) -> GatewayTrajectory:
        """The trajectory. The log is still open: a goal may hear what the agent said in the end."""
        turns = self.turns
        said: list[Any] = [turn.completion for turn in turns]
        if answer is not None and (not turns or turns[-1].message.text.strip() != answer.strip()):
            self._find("the agent's answer is not the last message of the model")
        attempt = self.log.episode(said, self._gateway.parser) if said else self.log.episode((), self._gateway.parser)
        if masked is not None:
            attempt = Attempt.told(self.task, self._gateway.parser, attempt.turns, attempt.conditions, masked=masked)
        branches, sampled, without = self._trained()
        found = (*self._findings, *(self.log.findings(said, self._gateway.parser) if said else ()))
        share = without / sampled if sampled else 0.0
        if share > WORTH_A_WARNING:
            found = (*found, f"{share:.0%} of the sampled tokens carry no loss")
        self._finished = GatewayTrajectory(self.name, self.task, attempt, branches, found, sampled, without)
        self._gateway.left(self)
        return self._finished

    def _trained(self) -> tuple[tuple[TrainedBranch, ...], int, int]:
        """The branches with the mask that a trainer takes, and how many sampled tokens carry loss in none of them."""
        made, sampled, without = [], 0, 0
        numbers = {id(branch): number for number, branch in enumerate(self._branches)}
        for branch in self._branches:
            line = branch.line
            mask = [0] * len(line)
            own = branch.own_turns
            for turn in own:
                size = turn.end - turn.start
                sampled += size
                if self._carries_loss(turn):
                    mask[turn.start : turn.end] = [1] * size
                else:
                    without += size
            if not line.prompt_ids:
                continue  # of a server without ids
            parent = None if branch.parent is None else numbers[id(branch.parent)]
            made.append(
                TrainedBranch(
                    branch.role,
                    line.prompt_ids,
                    line.response_ids,
                    tuple(mask),
                    line.logprobs,
                    tuple(turn.number for turn in own),
                    parent,
                    branch.forked_at,
                )
            )
        return tuple(made), sampled, without

    def _carries_loss(self, turn: GatewayTurn) -> bool:
        if not turn.delivered and not turn.read:
            self._find(f"answer {turn.number} was never read to its end: it carries no loss")
            return False
        return turn.has_ids


def _until(
    codec: ChatCodec, output: EngineOutput, stops: Sequence[str]
) -> tuple[tuple[int, ...], tuple[float, ...], str, bool]:
    """Ids, log-probabilities and text of an answer, up to the token with which a stop string is whole."""
    ids, logprobs = tuple(output.token_ids), tuple(output.logprobs)
    text = codec.text(ids)
    if not any(stop and stop in text for stop in stops):
        return ids, logprobs, text, False
    for count in range(1, len(ids) + 1):
        text = codec.text(ids[:count])
        if any(stop and stop in text for stop in stops):
            return ids[:count], logprobs[:count], text, True
    return ids, logprobs, text, False  # not reached: the whole text has one


def _before(text: str, stops: Sequence[str]) -> str:
    """The text up to the first stop string."""
    return text[: min(text.find(stop) for stop in stops if stop and stop in text)]


def _json(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return None
