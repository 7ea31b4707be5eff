"""Codecs: messages to token ids through a chat template, or as the plain text of a compact prompt.

Neither imports a tokenizer library: any object with the methods of a Hugging Face tokenizer will do.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import evolve

from callwright.episodes.results import as_user_message
from callwright.errors import DataError
from callwright.language.messages import Message, ToolCall
from callwright.language.parser import DEFAULT_LIMITS
from callwright.language.strict_json import decode
from callwright.tools.spec import ToolSpec
from callwright.walk.prompt import describe_tools
from callwright.walk.tasks import Task

#: Stands for the text of a completion where the template is asked what comes after one.
_MARK: Final = "COMPLETION"
#: Stands for a call where the template is asked how it shows one.
_MARKED_CALL: Final = ToolCall("callmark0", "MARKED", '{"argument": "value"}')
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

    def _encode_all(self, texts: Sequence[str], **options: Any) -> list[list[int]]:
        """Ids of several texts, tokenised at once where the tokenizer can: a fast one does it in threads."""
        with _ENCODING:
            if texts and callable(self.tokenizer):
                return [list(ids) for ids in self.tokenizer(list(texts), **options)["input_ids"]]
            return [list(self.tokenizer.encode(text, **options)) for text in texts]

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

    Tool calls of earlier turns go to the template with their arguments as an object or as text, whichever of the two it
    shows. Parts of a content go to it as one text where all are texts.
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
        self._parsed: bool | None = None

    def with_tools(self) -> ChatCodec:
        """The same with ``tools_in_template``. Raises :class:`callwright.errors.DataError` without a template."""
        if self.tools_in_template:
            return self
        options: dict[str, Any] = {"template_options": self._options, "observation_role": self._wanted_role}
        return type(self)(self.tokenizer, tools_in_template=True, ends=self.ends, **options)

    # The prompt ------------------------------------------------------------------------------------------------------

    def prompt_ids(self, messages: Sequence[Message], task: Task) -> tuple[int, ...]:
        """The prompt of a task: :meth:`conversation_ids` with its tools.

        Raises :class:`callwright.errors.DataError` if the template refuses them or does not show an offered tool.
        """
        return self.conversation_ids(messages, task.offered.values(), name=_prompt_of(task))

    def prompts_ids(self, prompts: Sequence[tuple[Sequence[Message], Task]]) -> list[tuple[int, ...]]:
        """The prompts of several tasks, tokenised at once: each is what :meth:`prompt_ids` gives.

        Raises :class:`callwright.errors.DataError` as that does.
        """
        texts = [self._text(messages, task.offered.values(), _prompt_of(task)) for messages, task in prompts]
        options = {"add_special_tokens": False} if self._templated else {}
        return [tuple(ids) for ids in self._encode_all(texts, **options)]

    def conversation_ids(
        self, messages: Sequence[Message], tools: Iterable[ToolSpec] = (), *, name: str = "the conversation"
    ) -> tuple[int, ...]:
        """Any messages through the template with its generation prompt; without a template their contents, in order.

        ``tools`` are those that are offered; they matter with ``tools_in_template``. ``name`` is what an error calls
        the messages. Raises :class:`callwright.errors.DataError` if the template refuses them or does not show an
        offered tool or an assistant's calls.
        """
        text = self._text(messages, tools, name)
        if not self._templated:
            with _ENCODING:
                return tuple(self.tokenizer.encode(text))
        return tuple(self._encode(text))

    def _text(self, messages: Sequence[Message], tools: Iterable[ToolSpec], name: str) -> str:
        if not self._templated:
            return "\n\n".join(message.text.strip() for message in messages) + "\n\n"
        options: dict[str, Any] = {}
        offered = [spec for spec in tools if not spec.hidden] if self.tools_in_template else []
        if self.tools_in_template:
            lines = describe_tools(offered)
            options["tools"] = [template_tool(line) for line in lines] or None
            messages = without_tool_list(messages, lines)
        try:
            text = self.render(messages, **options)
        except DataError:  # of its own: the template shows no calls
            raise
        except Exception as error:  # a template raises whatever it likes
            merged = merge_system(messages)
            try:
                if merged == tuple(messages):
                    raise
                text = self.render(merged, **options)
            except Exception:
                raise DataError(f"the chat template cannot render {name}: {type(error).__name__}: {error}") from error
        missing = [spec.name for spec in offered if spec.name not in text]
        if missing:
            raise DataError(
                f"the chat template does not show the offered tool {missing[0]!r} ({name}); "
                "use tools_in_template = false, which lists the tools in the system message"
            )
        return text

    def render(self, messages: Sequence[Message], *, generation: bool = True, **options: Any) -> str:
        """The text of messages; ``generation``: with the generation prompt. Raises whatever the template raises."""
        parsed = not any(message.tool_calls for message in messages) or self.parsed_arguments
        return self._apply(messages, parsed, generation, options)

    def _apply(self, messages: Sequence[Message], parsed: bool, generation: bool, options: Mapping[str, Any]) -> str:
        text = self.tokenizer.apply_chat_template(
            [template_message(message, parsed) for message in messages],
            tokenize=False,
            add_generation_prompt=generation,
            **{**self._options, **options},
        )
        return str(text)

    @property
    def parsed_arguments(self) -> bool:
        """Whether the template wants the arguments of calls as objects, as most do, or as text.

        Raises :class:`callwright.errors.DataError` for one that shows no calls.
        """
        if self._parsed is None:
            self._parsed = next((parsed for parsed in (True, False) if self._shows_calls(parsed)), None)
        if self._parsed is None:
            raise DataError(
                "the chat template does not show the tool calls of an assistant's message; write them in a form of "
                "text (callwright.language.turn_text), which every template shows"
            )
        return self._parsed

    def _shows_calls(self, parsed: bool) -> bool:
        try:
            text = self._apply([Message.user("QUESTION"), Message.assistant("", [_MARKED_CALL])], parsed, False, {})
        except Exception:  # a template raises whatever it likes
            return False
        return _MARKED_CALL.name in text and _ESCAPED.search(text) is None

    @property
    def prefix_text(self) -> str:
        """The generation prompt from its last ``<think>`` on if that is left open; else empty."""
        if self._prefix is None:
            self._prefix = self._open_thought() if self._templated else ""
        return self._prefix

    def _open_thought(self) -> str:
        for asked in ([Message.user("QUESTION")], [Message.system("RULES"), Message.user("QUESTION")]):
            try:
                prompt = self.render(asked)
                break
            except Exception:  # what a template wants more than that is not known here
                continue
        else:
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
            self._following((Message.tool('{"result": "é\n<b>"}'),))
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
            contents = [message.text for message in as_user_message(observations)]
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
        while any(mark in message.text for message in observations):
            mark += "_"
        asked = [Message.user("QUESTION"), Message.assistant(mark)]
        try:
            whole = self.render([*asked, *observations])
        except Exception as error:
            raise DataError(
                f"the chat template cannot render a message of the role {observations[0].role!r} after an "
                f"assistant's: {type(error).__name__}: {error}"
            ) from error
        _, found, following = whole.partition(mark)
        if not found or mark in following:
            raise DataError("the chat template does not render the text of an assistant's message once, as it is")
        contents: list[str] = []
        head = at = 0
        for message in observations:
            forms = _forms(message.text)
            content = next((form for form in forms if following.find(form, at) >= 0), None)
            if content is None:
                raise DataError(f"the chat template does not render a message of the role {message.role!r} as it is")
            at = following.find(content, at)
            head = head if contents else at
            at += len(content)
            contents.append(content)
        return following, contents, head


def _prompt_of(task: Task) -> str:
    return f"the prompt of task {task.id!r}"


def _forms(content: str) -> tuple[str, ...]:
    """How templates show a content: as it is, or as a JSON string (Llama 3.1 does so with results)."""
    return content.strip(), json.dumps(content, ensure_ascii=False), json.dumps(content)


#: Arguments that a template wrote as the JSON of a text, or in Python's notation.
_ESCAPED: Final = re.compile(r"""\\"argument|'argument'""")


def template_message(message: Message, parsed: bool = True) -> dict[str, Any]:
    """The wire format as chat templates read it: texts as one, arguments as an object if they are one and wanted so."""
    made = message.to_openai()
    if message.is_text:
        made["content"] = message.text
        if message.thought:
            made["reasoning_content"] = message.thought
    for call in made["tool_calls"] if parsed and message.tool_calls else ():
        call["function"]["arguments"] = _as_object(call["function"]["arguments"])
    return made


def _as_object(arguments: str) -> Any:
    """Arguments that are no object stay the text that was sampled."""
    read = decode(arguments or "{}", 0, DEFAULT_LIMITS.nesting)
    return read if isinstance(read, dict) else arguments


def template_tool(line: str) -> dict[str, Any]:
    """A line of the list of tools as the JSON that chat templates read: a function with its parameters."""
    shown = json.loads(line)
    if "type" not in shown["parameters"]:  # which lines of brief tools leave out
        shown["parameters"] = {"type": "object", **shown["parameters"]}
    return {"type": "function", "function": {key: value for key, value in shown.items() if key != "returns"}}


def without_tool_list(messages: Sequence[Message], lines: Sequence[str]) -> tuple[Message, ...]:
    """The messages without the list of offered tools that ends the system message, where it is there."""
    listed = "\n\n# Tools\n" + ("\n".join(lines) or "(none)") + "\n"
    return tuple(
        evolve(message, content=message.text.replace(listed, ""))
        if message.role == "system" and listed in message.text
        else message
        for message in messages
    )


def merge_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with those of the system at the head of the user's first, for templates without that role."""
    head = "\n\n".join(message.text.strip() for message in messages if message.role in ("system", "developer"))
    rest = [message for message in messages if message.role not in ("system", "developer")]
    for index, message in enumerate(rest):
        if head and message.role == "user":
            said = message.content
            merged = f"{head}\n\n{said}" if isinstance(said, str) else (f"{head}\n\n", *said)
            rest[index] = evolve(message, content=merged)
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
        return self._begun(self._encode(self._prompt(task)))

    def prompts_ids(self, prompts: Sequence[tuple[Sequence[Message], Task]]) -> list[tuple[int, ...]]:
        """The prompts of several tasks, tokenised at once: each is what :meth:`prompt_ids` gives."""
        texts = [self._prompt(task) for _, task in prompts]
        return [self._begun(ids) for ids in self._encode_all(texts, add_special_tokens=False)]

    def _begun(self, ids: Sequence[int]) -> tuple[int, ...]:
        begin = self.tokenizer.bos_token_id
        return (begin, *ids) if begin is not None else tuple(ids)

    def observation_ids(
        self, messages: Sequence[Message], completion_ids: Sequence[int], observations: Sequence[Message]
    ) -> tuple[int, ...]:
        """The ids between a completion and the next one."""
        contents = self._between.join(message.text for message in observations)
        ids = self._encode(f"{self._before}{contents}{self._after}", special=False)
        end = self.tokenizer.eos_token_id
        ended = len(completion_ids) and completion_ids[-1] in self._ends
        return tuple(ids) if ended or end is None else (end, *ids)
