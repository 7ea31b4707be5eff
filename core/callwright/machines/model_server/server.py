"""One model of one server: how it is asked, how fast, how often, and for how much money at most."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from attrs import define, field

from callwright.errors import UsageError
from callwright.machines.command_folder import SharedNumbers, is_first, share
from callwright.machines.model_server.budget import Budget
from callwright.machines.model_server.limiter import Limiter
from callwright.machines.model_server.refused_parameters import RefusedParameters
from callwright.machines.model_server.statuses import ServerFailing
from callwright.machines.model_server.usage import Usage
from callwright.machines.redaction import redacted
from callwright.registration import Reach

if TYPE_CHECKING:
    from callwright.machines.model_server.connection import Connection
    from callwright.machines.model_server.reply_cache import ReplyCache

T = TypeVar("T")
OPENAI: Final = "https://api.openai.com/v1"


class Replies(Protocol):
    """Answers that were paid for already. A request is looked up before it is made, and kept after it succeeded.

    What is worth keeping (an answer that was cut, say) is for :meth:`put` to decide.
    """

    def key(self, endpoint: str, address: str, body: Mapping[str, Any]) -> str:
        """Tells requests apart; asked once for each. Keys and passwords in the address take no part."""

    def get(self, key: str) -> dict[str, Any] | None:
        """The answer to that request, if it is kept."""

    def begun(self, key: str, worst: float = 0.0) -> None:
        """The request is sent for the first time: from now on it may have to be paid for, with ``worst`` at most."""

    def lost(self, worst: float) -> None:
        """An answer was lost on the way, or says no usage: it may have cost so much."""

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """It was answered."""

    def gave_up(self, key: str) -> None:
        """It failed or was refused, and is not tried again."""


@define(kw_only=True, eq=False)
class Server:
    """One model of one server.

    ``base_url`` defaults to ``$OPENAI_BASE_URL``, else OpenAI's; the key is read from the environment variable
    ``api_key_env``, and servers that want none get a placeholder. At most ``concurrency`` requests are under way on a
    connection, and begun at most ``requests_per_minute`` and ``tokens_per_minute`` (prompts estimated, completions at
    their limit; corrected by what the server counted). These two hold for a whole command: retries, connections and
    worker processes together, and all servers of the same address and model.

    A request is repeated up to ``retries`` times after time-outs (``timeout`` seconds for all of it), lost connections,
    answers that are cut, and the statuses 408, 409, 425, 429 and 5xx. ``most_failures`` requests in a row that fail, of
    all processes together, end the command (:class:`.statuses.ServerFailing`).

    ``prices`` are per million prompt and completion tokens, and cached prompt tokens (else those cost like others).
    ``max_cost``, in the same currency, is never passed: :class:`.budget.BudgetSpent` is raised before.

    Raises :class:`callwright.UsageError` for numbers that make no sense and for an empty ``base_url``.
    """

    model: str
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    retries: int = 5
    timeout: float = 600.0
    prices: tuple[float, ...] = (0.0, 0.0)
    max_cost: float | None = None
    most_failures: int = 20
    #: Where answers are looked up before a request is made and kept when it was answered, if anywhere.
    replies: Replies | None = field(default=None, init=False)
    usage: Usage = field(factory=Usage, init=False)
    #: What the model was found not to take.
    parameters: RefusedParameters = field(factory=RefusedParameters, init=False)
    #: How many requests in a row have failed: in all processes of the command.
    _failures: SharedNumbers = field(init=False)
    _budget: Budget | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        if self.concurrency < 1 or self.retries < 0 or self.timeout <= 0 or self.most_failures < 1:
            raise UsageError(
                "concurrency and most_failures must be 1 or more, retries 0 or more, and timeout more than 0"
            )
        if self.base_url is not None and not self.base_url.strip():  # as a variable that is not set would be
            raise UsageError("base_url is empty; give the server's address, or leave base_url out for OpenAI's")
        for name in ("requests_per_minute", "tokens_per_minute", "max_cost"):
            limit = getattr(self, name)
            if limit is not None and not 0 < limit < float("inf"):
                raise UsageError(f"{name} must be more than 0 and finite, not {limit!r}")
        if len(self.prices) not in (2, 3) or not all(0 <= price < float("inf") for price in self.prices):
            raise UsageError("prices are those of prompt and completion tokens, and of cached ones: 0 or more, finite")
        self._failures = SharedNumbers(f"{self._key('failures')}.failures", 1)
        if is_first():
            self.answered()  # what another one of this program met before is over
        if self.max_cost is not None:
            if not any(self.prices):
                raise UsageError("max_cost needs prices: price_prompt and price_completion, per million tokens")
            self._budget = Budget(self._key("budget"), self.max_cost / share(), self.timeout + 60)

    @property
    def address(self) -> str:
        """Where the server is."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI

    @property
    def label(self) -> str:
        """The address for people: without user, password and keys."""
        return redacted(self.address)

    def keep_replies(self, replies: ReplyCache) -> None:
        """From now on look there before asking, and put every answer there but those that hold this server's key."""
        replies.secret_variables = (*replies.secret_variables, self.api_key_env)
        self.replies = replies

    @property
    def budget(self) -> Budget | None:
        """What may be spent, if that is limited."""
        return self._budget

    def without_secrets(self, text: str) -> str:
        """A text that may hold what the server was sent: without its key, and whatever else looks like one."""
        return redacted(text, filter(None, [os.environ.get(self.api_key_env)]))

    def limiter(self) -> Limiter | None:
        """What every HTTP request to this server takes from before it is sent; None without limits."""
        if self.requests_per_minute is None and self.tokens_per_minute is None:
            return None
        requests, tokens = (
            None if rate is None else rate / share() for rate in (self.requests_per_minute, self.tokens_per_minute)
        )
        return Limiter(SharedNumbers(f"{self._key('limits')}.limits", 2), requests, tokens)

    def _key(self, kind: str) -> str:
        """Tells servers apart, in the name of a file: the same in each process of a command."""
        said: tuple[object, ...] = (kind, self.label, self.model)
        if kind == "budget":
            said = (*said, self.api_key_env, self.prices, self.max_cost)
        return blake2b(repr(said).encode(), digest_size=12).hexdigest()

    def answered(self) -> None:
        """A request was answered: the row of failures ends."""
        if self._failures.exists():
            with self._failures.locked() as numbers:
                numbers[0] = 0

    def failed(self, failure: Exception) -> None:
        """A request failed after all retries. Raises :class:`.statuses.ServerFailing` after too many in a row."""
        self.usage.failed += 1
        with self._failures.locked() as numbers:
            numbers[0] += 1
            in_a_row = int(numbers[0])
        if in_a_row >= self.most_failures:
            raise ServerFailing(
                f"{in_a_row} requests in a row failed, the last one so: {failure}. What was finished is kept; "
                "see to the server and give the same command again (option most_failures)"
            ) from None

    def all(self, requests: Sequence[Callable[[Connection], Awaitable[T]]]) -> list[T | BaseException]:
        """The answers to many requests, in their order; what a request raises stands in place of its answer.

        Works from synchronous code and from within a running event loop.
        """
        from callwright.machines.model_server.connection import Connection

        async def work() -> list[T | BaseException]:
            async with Connection(self) as connection:
                return await asyncio.gather(*(request(connection) for request in requests), return_exceptions=True)

        return run_to_end(work())


def key_reaches(options: Mapping[str, Any], variable: str, usual: str) -> Iterator[Reach]:
    """What options ``base_url`` and ``api_key_env`` of a sampler or teacher reach for: a key that goes to a host.

    ``variable`` is the default of ``api_key_env``, ``usual`` the host without ``base_url``. With neither option the
    usual key goes to the usual host, which is no choice of a recipe; a variable that is not set cannot be sent.
    """
    named = str(options.get("api_key_env", variable))
    if ("base_url" in options or "api_key_env" in options) and os.environ.get(named):
        host = options.get("base_url") or os.environ.get("OPENAI_BASE_URL") or usual
        yield Reach("secret", f"sends the environment variable {named} to {host}", ("base_url", "api_key_env"))


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from synchronous code, in a thread of its own where this one has a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    found: list[T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(work))
        except BaseException as error:  # belongs to the thread that waits
            raised.append(error)

    thread = threading.Thread(target=run, name="callwright-server")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]
