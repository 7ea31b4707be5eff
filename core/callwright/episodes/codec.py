"""Codecs: messages to token ids through a chat template, or as the plain text of a compact prompt.

Neither imports a tokenizer library: any object with the methods of a Hugging Face tokenizer will do.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from callwright.episodes.results import as_user_message
from callwright.errors import DataError
from callwright.walk.prompt import describe_tool
from callwright.walk.sampling import Message
from callwright.walk.tasks import Task

#: Stands for the text of a completion where the template is asked what comes after one.
_MARK: Final = "COMPLETION"
_THINK, _THINK_END = "<think>", "</think>"
#: Hugging Face tokenizers keep ``split_special_tokens`` of the call at hand in themselves: threads must not mix.
_ENCODING: Final = threading.Lock()


class _Decoding:
    """What every codec does with sampled ids."""

    def __init__(self, tokenizer: Any, ends: Iterable[int]) -> None:
        self.tokenizer = tokenizer
        own = tokenizer.eos_token_id
        self._ends = frozenset(ends) | (frozenset() if own is None else {own})
        added = getattr(tokenizer, "added_tokens_decoder", {}).values()
        control = [*getattr(tokenizer, "all_special_tokens", ()), *(one.content for one in added if one.special)]
        self._specials = tuple(dict.fromkeys(str(token) for token in control))

    @property
    def ends(self) -> frozenset[int]:
        """The ids that end a completion: those given, and the tokenizer's own."""
        return self._ends

    @property
    def prefix_text(self) -> str:
        """The end of the generation prompt that belongs to the text of a completion."""
        return ""

    def text(self, ids: Sequence[int]) -> str:
        """The text of sampled ids, without the final end token. Special tokens inside stay visible: they are output."""
        if len(ids) and ids[-1] in self._ends:
            ids = ids[:-1]
        decoded: str = self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return decoded

    def _encode(self, text: str, *, special: bool = True) -> list[int]:
        """Ids of a text; without ``special``, what looks like a special token in it is text."""
        split = {} if special or not any(token in text for token in self._specials) else {"split_special_tokens": True}
        with _ENCODING:
            return list(self.tokenizer.encode(text, add_special_tokens=False, **split))

    def _encode_around(self, text: str, contents: Sequence[str]) -> list[int]:
        """Ids of a rendered text in which the special tokens of ``contents`` are text, and those around it control.

        Only where a content holds one is the text encoded in pieces; elsewhere as the whole that the model knows.
        """
        ids: list[int] = []
        for content in contents:
            if not any(token in content for token in self._specials):
                continue
            at = text.find(content)
            if at < 0:
                continue
            ids += self._encode(text[:at]) if at else []
            ids += self._encode(content, special=False)
            text = text[at + len(content) :]
        return ids + (self._encode(text) if text else [])


class ChatCodec(_Decoding):
    """Prompts and observations as the chat template of a tokenizer writes them; messages as plain text without one.

    ``tools_in_template``: the template is given the offered tools as JSON schemas (``tools=``), and the list that
    :func:`callwright.walk.prompt.build_messages` wrote is taken out of the system message. ``template_options`` are
    further variables of the template (``enable_thinking``). ``ends``: end ids besides the tokenizer's, as a generation
    config has them. ``observation_role``: ``tool`` or ``user`` for results of calls; ``auto`` is ``tool`` where the
    template renders that role.

    What follows a completion is read off the template with a placeholder in the completion's place, so that nothing
    that was sampled is tokenised again and templates that rewrite earlier turns (by taking thoughts out) rewrite
    nothing. Raises :class:`callwright.errors.DataError` where the template cannot say it.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        tools_in_template: bool = False,
        template_options: Mapping[str, Any] | None = None,
        ends: Iterable[int] = (),
        observation_role: Literal["auto", "tool", "user"] = "auto",
    ) -> None:
        super().__init__(tokenizer, ends)
        self.tools_in_template = tools_in_template
        self._options = dict(template_options or {})
        self._templated = bool(getattr(tokenizer, "chat_template", None))
        if tools_in_template and not self._templated:
            raise DataError("the tokenizer has no chat template that could be given tools; leave tools_in_template off")
        self._wanted_role = observation_role
        self._role: Literal["tool", "user"] | None = None
        self._prefix: str | None = None

    # The prompt ------------------------------------------------------------------------------------------------------

    def prompt_ids(self, messages: Sequence[Message], task: Task) -> tuple[int, ...]:
        """The messages through the template with its generation prompt; without a template their contents, in order.

        Raises :class:`callwright.errors.DataError` if the template refuses them or does not show an offered tool.
        """
        if not self._templated:
            plain = "\n\n".join(message["content"].strip() for message in messages) + "\n\n"
            with _ENCODING:
                return tuple(self.tokenizer.encode(plain))
        options: dict[str, Any] = {}
        if self.tools_in_template:
            options["tools"] = [template_tool(line) for line in _tool_lines(task)] or None
            messages = without_tool_list(messages, task)
        try:
            text = self.render(messages, **options)
        except Exception as error:  # a template raises whatever it likes
            merged = merge_system(messages)
            try:
                if merged == tuple(messages):
                    raise
                text = self.render(merged, **options)
            except Exception:
                raise DataError(
                    f"the chat template cannot render the prompt of task {task.id!r}: {type(error).__name__}: {error}"
                ) from error
        if self.tools_in_template:
            missing = [spec.name for spec in task.tools.values() if not spec.hidden and spec.name not in text]
            if missing:
                raise DataError(
                    f"the chat template does not show the offered tool {missing[0]!r} (task {task.id!r}); "
                    "use tools_in_template = false, which lists the tools in the system message"
                )
        return tuple(self._encode(text))

    def render(self, messages: Sequence[Message], *, generation: bool = True, **options: Any) -> str:
        """The text of messages; ``generation``: with the generation prompt. Raises whatever the template raises."""
        text = self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=generation, **{**self._options, **options}
        )
        return str(text)

    @property
    def prefix_text(self) -> str:
        """The generation prompt from its last ``<think>`` on if that is left open; else empty."""
        if self._prefix is None:
            self._prefix = self._open_thought() if self._templated else ""
        return self._prefix

    def _open_thought(self) -> str:
        question = [Message(role="user", content="QUESTION")]
        try:
            prompt = self.render(question)
        except Exception:  # templates that want more than a user's message open no thought that could be known
            return ""
        at = prompt.rfind(_THINK)
        return prompt[at:] if at > prompt.rfind("QUESTION") and _THINK_END not in prompt[at:] else ""

    # What follows a completion ---------------------------------------------------------------------------------------

    @property
    def observation_role(self) -> Literal["tool", "user"]:
        """The role in which results of calls are shown."""
        if self._role is None:
            self._role = self._find_role() if self._wanted_role == "auto" else self._wanted_role
        return self._role

    def _find_role(self) -> Literal["tool", "user"]:
        if not self._templated:
            return "tool"
        try:
            self._following((Message(role="tool", content='{"result": "é\n<b>"}'),))
        except DataError:
            return "user"
        return "tool"

    def observation_ids(
        self, messages: Sequence[Message], completion_ids: Sequence[int], observations: Sequence[Message]
    ) -> tuple[int, ...]:
        """The ids between a completion and the next one.

        Raises :class:`callwright.errors.DataError` as the class says.
        """
        if not self._templated:
            contents = [message["content"] for message in as_user_message(observations)]
            return tuple(self._encode("\n\n" + "\n\n".join(contents) + "\n\n", special=False))
        if self.observation_role == "user":
            observations = as_user_message(observations)
        following, contents, head = self._following(observations)
        ids = self._encode_around(following, contents)
        if len(completion_ids) and completion_ids[-1] in self._ends:  # a turn ends once
            ended = [at for at, token in enumerate(ids[: len(self._encode(following[:head]))]) if token in self._ends]
            ids = ids[ended[0] + 1 :] if ended else ids
        return tuple(ids)

    def following(self, observations: Sequence[Message]) -> str:
        """The text from the end of a completion to the beginning of the next, as the template writes it.

        Raises :class:`callwright.errors.DataError` where the template cannot say it.
        """
        return self._following(observations)[0]

    def _following(self, observations: Sequence[Message]) -> tuple[str, list[str], int]:
        """The text that follows a completion, the new contents as they stand in it, and where the first one begins."""
        mark = _MARK
        while any(mark in message["content"] for message in observations):
            mark += "_"
        asked = [Message(role="user", content="QUESTION"), Message(role="assistant", content=mark)]
        try:
            whole = self.render([*asked, *observations])
        except Exception as error:
            raise DataError(
                f"the chat template cannot render a message of the role {observations[0]['role']!r} after an "
                f"assistant's: {type(error).__name__}: {error}"
            ) from error
        _, found, following = whole.partition(mark)
        if not found or mark in following:
            raise DataError("the chat template does not render the text of an assistant's message once, as it is")
        contents: list[str] = []
        head = at = 0
        for message in observations:
            forms = _forms(message["content"])
            content = next((form for form in forms if following.find(form, at) >= 0), None)
            if content is None:
                raise DataError(f"the chat template does not render a message of the role {message['role']!r} as it is")
            at = following.find(content, at)
            head = head if contents else at
            at += len(content)
            contents.append(content)
        return following, contents, head


def _forms(content: str) -> tuple[str, ...]:
    """How templates show a content: as it is, or as a JSON string (Llama 3.1 does so with results)."""
    return content.strip(), json.dumps(content, ensure_ascii=False), json.dumps(content)


def _tool_lines(task: Task) -> list[str]:
    return [describe_tool(spec) for spec in task.tools.values() if not spec.hidden]


def template_tool(line: str) -> dict[str, Any]:
    """A line of the list of tools as the JSON that chat templates read: a function with its parameters."""
    shown = json.loads(line)
    return {"type": "function", "function": {key: value for key, value in shown.items() if key != "returns"}}


def without_tool_list(messages: Sequence[Message], task: Task) -> tuple[Message, ...]:
    """The messages without the list of offered tools that ends the system message, where it is there."""
    listed = "\n\n# Tools\n" + ("\n".join(_tool_lines(task)) or "(none)") + "\n"
    return tuple(
        Message(role="system", content=message["content"].replace(listed, ""))
        if message["role"] == "system"
        else message
        for message in messages
    )


def merge_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with those of the system at the head of the user's first, for templates without that role."""
    head = "\n\n".join(message["content"].strip() for message in messages if message["role"] == "system")
    rest = [message for message in messages if message["role"] != "system"]
    for index, message in enumerate(rest):
        if head and message["role"] == "user":
            rest[index] = Message(role="user", content=f"{head}\n\n{message['content']}")
            break
    return tuple(rest)


class PlainCodec(_Decoding):
    """The compact prompt of a corpus, for tiny models without a chat template.

    ``prompt`` writes it for a task. An observation is ``before``, the contents of its messages joined by ``between``,
    and ``after``; a completion that did not end itself is ended first, so that the next begins as every other does.
    """

    def __init__(
        self,
        tokenizer: Any,
        prompt: Callable[[Task], str],
        *,
        ends: Iterable[int] = (),
        before: str = "\n",
        between: str = "\n",
        after: str = "\n",
    ) -> None:
        super().__init__(tokenizer, ends)
        self._prompt = prompt
        self._before, self._between, self._after = before, between, after

    def prompt_ids(self, messages: Sequence[Message], task: Task) -> tuple[int, ...]:
        """The compact text, after the token that begins a text if the tokenizer has one. The messages play no part."""
        ids = self._encode(self._prompt(task))
        begin = self.tokenizer.bos_token_id
        return (begin, *ids) if begin is not None else tuple(ids)

    def observation_ids(
        self, messages: Sequence[Message], completion_ids: Sequence[int], observations: Sequence[Message]
    ) -> tuple[int, ...]:
        """The ids between a completion and the next one."""
        contents = self._between.join(message["content"] for message in observations)
        ids = self._encode(f"{self._before}{contents}{self._after}", special=False)
        end = self.tokenizer.eos_token_id
        ended = len(completion_ids) and completion_ids[-1] in self._ends
        return tuple(ids) if ended or end is None else (end, *ids)
