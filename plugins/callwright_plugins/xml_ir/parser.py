"""``<api id="0"><name>TOOL</name><param name="p" type="string">value</param></api>`` (TIER, appendix A.1)."""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen

from callwright.language.envelope import Enveloped, read_envelope, said_after, write_envelope
from callwright.language.parser import DEFAULT_LIMITS, ParseFailure, ParseLimits
from callwright.language.program import Program
from callwright.language.teaching import Taught, allowed_instructions, check_taught
from callwright.language.wording import tier_instructions
from callwright.language.writable import check_program
from callwright_plugins.xml_ir.document import find_start_tag, read_document
from callwright_plugins.xml_ir.reader import Fault, Reader
from callwright_plugins.xml_ir.writer import write_body


@frozen
class XmlParser(Enveloped):
    """TIER's XML form.

    The body is a sequence of ``<api id="N">`` elements, or a single ``<none/>``. Each has one ``<name>`` and any number
    of ``<param name="…" type="…">``; lists hold ``<item type="…">``, objects ``<field name="…" type="…">``, to any
    depth. The types are ``string`` (``str``), ``integer`` (``int``), ``float``, ``number``, ``boolean`` (``bool``),
    ``null``, ``array`` (``list``) and ``object`` (``dict``). A reference is
    ``<response api_id="0" api_name="TOOL" field="path" type="placeholder"/>`` in place of a value; ``field`` may be
    left out, and so may the type of the element around it. Calls run in the order of their ids. White space around
    a value does not count, except in a string with ``xml:space="preserve"``. Comments are skipped and CDATA sections
    are text. The XML is read strictly: a bare ``&`` or ``<`` in a value is a failure, and so are declarations and
    processing instructions. A number under ``integer`` is read as that number, ``255.0`` as 255: the tool's schema says
    whether it fits. A ``<response>`` whose ``api_name`` is not the tool of its ``api_id`` names no call.

    Cannot be expressed: ids that do not ascend; references to ids that no call has, because a reference names its tool;
    references with a path of keys that hold ``.``, ``[`` or ``]``; text with characters that XML does not have (most
    control characters, U+FFFE, U+FFFF, halves of surrogate pairs); an empty tool name or one with white space
    around it; numbers that are not finite; a thought with ``</think>`` directly before a tool-call tag; anything
    beyond the limits. A literal string that looks like a reference can be expressed.
    """

    limits: ParseLimits = DEFAULT_LIMITS
    teaches: Taught = field(default="allowed", alias="instructions", validator=check_taught, kw_only=True)
    name: ClassVar[str] = "xml"

    def parse(self, text: str) -> Program | ParseFailure:
        """Read a completion. Failures of the envelope, and then:

        ``forbidden_markup``, ``invalid_xml``, ``lone_surrogate`` (``syntax``); ``empty_body``, ``none_and_calls``,
        ``unexpected_element``, ``unexpected_text``, ``unexpected_attribute``, ``missing_attribute``, ``missing_type``,
        ``missing_response``, ``invalid_id``, ``duplicate_id``, ``empty_call``, ``several_tools`` (``structure``);
        ``invalid_value``, ``unknown_type``, ``duplicate_key``, ``invalid_reference`` (``arguments``);
        ``too_many_calls``, ``too_deep``, ``number_too_long`` (``limit``).
        """
        envelope = read_envelope(text, self.limits)
        if isinstance(envelope, ParseFailure):
            return envelope
        root = read_document(envelope.body, envelope.start)
        if isinstance(root, ParseFailure):
            return root
        reader = Reader(root, self.limits)
        try:
            calls = reader.calls()
            if reader.contradicted:  # the names of later calls are known only now
                reader = Reader(root, self.limits, {call.id: call.tool for call in calls})
                calls = reader.calls()
        except RecursionError:  # only with a limit on nesting far beyond the default
            span = (envelope.start, envelope.start + len(envelope.body))
            return ParseFailure("limit", "too_deep", "values are nested too deep", span)
        except Fault as error:
            fault = error.with_traceback(None)  # its traceback would hold this frame, and this frame holds it
        else:
            if reader.unusable is None and not calls:
                return Program((), envelope.returns or "one", envelope.thought, said_after(text, envelope))
            if reader.unusable is None:
                return Program(calls, envelope.returns or "one", envelope.thought)
            fault = reader.unusable
        number = next((n for n, element in enumerate(root.iter()) if element is fault.element), 0)
        start, end = find_start_tag(envelope.body, number - 1) if number else (0, len(envelope.body))
        return ParseFailure(fault.stage, fault.code, fault.message, (envelope.start + start, envelope.start + end))

    def render(self, program: Program) -> str:
        """Write a completion, one line a call. Raises :class:`callwright.errors.CannotExpress`."""
        check_program(program, self.limits, "ascending", "elements")
        return write_envelope(program, write_body(program), self.limits)

    def instructions(self) -> str:
        """The part of the system prompt that teaches this form."""
        return self.instructions_within(steps=True, requests=True)

    def instructions_within(self, *, steps: bool, requests: bool) -> str:
        """The same for what is allowed: answers after results of calls, and further requests of the user."""
        if self.teaches == "paper":
            return tier_instructions(self, _RULES)
        return allowed_instructions(self, _ALLOWED, steps=steps, requests=requests)


_RULES = (
    "The body is well-formed XML without declarations. Inside a value & is written &amp; and < is written &lt;.",
    'Each call is one <api id="…"> element. Number them 0, 1, 2 and so on, each id once, in the order in which the '
    "calls must run.",
    "An <api> element holds one <name> with the exact name of the tool, and one <param> element for each argument.",
    'A <param> has the attribute name and, around a value that is written out, the attribute type: "string", '
    '"integer", "float", "boolean", "null", "array" or "object", as the tool\'s schema asks for.',
    "An array holds one <item> with a type for each element; an object holds one <field> with a name and a type for "
    "each of its keys. Both may be nested.",
    'For the result of an earlier call write <response api_id="0" api_name="TOOL_NAME_0" type="placeholder"/> in '
    'place of the value, with field="…" for one field of that result. Refer only to earlier calls of the same block.',
    "If no call is to be made, the body is <none/>.",
)
_PATHS = (
    'A path goes on into it: field="list[0]" is the first item of a list, field="object.inner" a field of an object.'
)
#: The rules with paths into results, which the paper's do not explain.
_ALLOWED = tuple(f"{rule} {_PATHS}" if "earlier call" in rule else rule for rule in _RULES)
