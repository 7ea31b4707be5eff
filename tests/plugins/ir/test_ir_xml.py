"""TIER's XML form, by example; «…» marks the text that a failure points at."""

from __future__ import annotations

from xml.dom import minidom

import pytest

from callwright.errors import CannotExpress
from callwright.language.parser import ParseFailure, ParseLimits
from callwright.language.program import NO_CALL, Call, Program, Reference
from callwright_plugins.xml_ir.parser import XmlParser

PARSER = XmlParser()


def complete(body: str) -> str:
    return f'<think>\nwhy\n</think>\n<tool_call return="one">{body}</tool_call>'


def calls(body: str) -> tuple[Call, ...]:
    program = PARSER.parse(complete(body))
    assert isinstance(program, Program), program
    return program.calls


def one(parameters: str) -> str:
    return f'<api id="0"><name>T</name>{parameters}</api>'


def test_example_of_the_appendix() -> None:
    body = (
        '<api id="0"> <name>API_NAME_0</name> <param name="P_0" type="string">VALUE_0</param> '
        '<param name="P_1" type="integer">1</param> </api> <api id="1"> <name>API_NAME_1</name> <param name="P_0"> '
        '<response api_id="0" api_name="API_NAME_0" type="placeholder"/> </param> </api>'
    )
    assert calls(body) == (
        Call(0, "API_NAME_0", {"P_0": "VALUE_0", "P_1": 1}),
        Call(1, "API_NAME_1", {"P_0": Reference(0)}),
    )
    assert calls("\n<none/>\n") == calls("<none></none>") == ()


def test_calls_are_ordered_by_number() -> None:
    assert [call.id for call in calls('<api id="7"><name>T</name></api><api id="03"><name>U</name></api>')] == [3, 7]


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ('<param name="a" type="string"> x  y\n</param>', "x  y"),
        ('<param name="a" type="string" xml:space="preserve"> x </param>', " x "),
        ('<param name="a" type="str"/>', ""),
        ('<param name="a" type="string">a &amp; b &lt; &#65;&#x1F600; &quot;</param>', 'a & b < A😀 "'),
        ('<param name="a" type="string">API_RESPONSE_0</param>', "API_RESPONSE_0"),
        ('<param name="a" type="string">\u00a0x\u00a0</param>', "\u00a0x\u00a0"),
        ('<param name="a" type="integer"> -12345678901234567890123 </param>', -12345678901234567890123),
        ('<param name="a" type="int">+7</param>', 7),
        ('<param name="a" type="integer">255.0</param>', 255),
        ('<param name="a" type="integer">2.55e2</param>', 255),
        ('<param name="a" type="integer">7.5</param>', 7.5),
        ('<!-- a > b --><param name="a" type="string">a <!-- & < <b> -->b</param><!-- -->', "a b"),
        ('<param name="a" type="string"><![CDATA[ a & b < <!DOCTYPE> <?x?> ]]>&amp; c</param>',
         "a & b < <!DOCTYPE> <?x?> & c"),
        ('<param name="a"><!-- of T --><response api_id="3" api_name="U"/></param>', Reference(3)),
        ('<param name="a"><response api_id="x" api_name="T"/></param>', Reference(NO_CALL, ("x",))),
        ('<param name="a"><response api_id="1234567890" api_name="T" field="b"/></param>',
         Reference(NO_CALL, ("1234567890.b",))),
        ('<param name="a"><response api_id="1" api_name="T" field="b..c"/></param>', Reference(NO_CALL, ("1.b..c",))),
        ('<param name="a"><response api_id="0" api_name="U"/></param>', Reference(NO_CALL, ("0 of U",))),
        ('<param name="a"><response api_id="0.b" api_name="T"/></param>', Reference(NO_CALL, ("0.b of T",))),
        ('<param name="a" type="float">5</param>', 5.0),
        ('<param name="a" type="number">5</param>', 5),
        ('<param name="a" type="number">5.</param>', 5.0),
        ('<param name="a" type="float">-.5e-3</param>', -0.0005),
        ('<param name="a" type="boolean">True</param>', True),
        ('<param name="a" type="bool">0</param>', False),
        ('<param name="a" type="null"/>', None),
        ('<param name="a" type="null">null</param>', None),
        ('<param name="a" type="array"></param>', []),
        ('<param name="a" type="dict"> </param>', {}),
        ('<param name="a" type="list"><item type="integer">1</item> '
         '<item type="array"><item type="null"/></item></param>',
         [1, [None]]),
        ('<param name="a" type="object"><field name="k v" type="dict">'
         '<field name="" type="string">x</field></field></param>',
         {"k v": {"": "x"}}),
        ('<param name="a" type="placeholder"><response api_id="00" api_name="T" field="x.y[2].z w"/></param>',
         Reference(0, ("x", "y", 2, "z w"))),
        ('<param name="a" type="pandas.DataFrame"><response api_id="0" api_name="T" field="[1].b"/></param>',
         Reference(0, (1, "b"))),
        ('<param name="a" type="array"><item><response api_id="5" api_name="missing"/></item></param>', [Reference(5)]),
    ],
)  # fmt: skip
def test_values(element: str, value: object) -> None:
    found = calls(one(element))[0].arguments["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("marked", "stage", "code"),
    [
        (one('<param name="a" type="string">a «&» b</param>'), "syntax", "invalid_xml"),
        (one('<param name="é😀" type="string">é😀 «<» b</param>'), "syntax", "invalid_xml"),
        (one('<param name="a" type="string">«&»evil;</param>'), "syntax", "invalid_xml"),
        (one('<param name="a" type="string">«\x00»</param>'), "syntax", "invalid_xml"),
        (one('<param name="a" type="string">«&»#0;</param>'), "syntax", "invalid_xml"),
        (one('<param name="a" type="string">\r\n x\r\n«\uffff»</param>'), "syntax", "invalid_xml"),
        (one('<param name="a" type="string">x«\ud800»</param>'), "syntax", "lone_surrogate"),
        ('<api id="0"><name>T</name>«»', "syntax", "invalid_xml"),
        ("</«a»pi>", "syntax", "invalid_xml"),
        ('«<!DOCTYPE» x [<!ENTITY a "b">]><none/>', "syntax", "forbidden_markup"),
        ('</body>«<!DOCTYPE» x><body>', "syntax", "forbidden_markup"),
        ("<none/>«<!--» c -- >", "syntax", "forbidden_markup"),
        (one('<param name="a" type="string">«<![CDATA[»x]></param>'), "syntax", "forbidden_markup"),
        ("<!-- <?xml ?> -->«<!ENTITY» a 'b'><none/>", "syntax", "forbidden_markup"),
        (one("<!-- <name>U</name> -->«<param name='a'>»x</param>"), "structure", "missing_type"),
        ("<api id='0'><name><![CDATA[<name>]]></name>«<name>»V</name></api>", "structure", "several_tools"),
        ("«<?xml» version='1.0'?><none/>", "syntax", "forbidden_markup"),
        ("</body>«<»body>", "syntax", "invalid_xml"),
        ("« »", "structure", "empty_body"),
        ("«hello»", "structure", "unexpected_text"),
        ("«<none/>» or not", "structure", "unexpected_text"),
        ("<api id='0'><name>T</name></api>«<none/>»", "structure", "none_and_calls"),
        ("«<none/>»<none/>", "structure", "none_and_calls"),
        ("«<call>»</call>", "structure", "unexpected_element"),
        ("«<none>»x</none>", "structure", "unexpected_text"),
        ("<api id='0'><name>T</name>«<foo/>»</api>", "structure", "unexpected_element"),
        ("«<api id='0'>» text <name>T</name></api>", "structure", "unexpected_text"),
        ("<api id='0'>«<name>»T</name> text </api>", "structure", "unexpected_text"),
        ("<api id='0'><name>T«<b>»x</b></name></api>", "structure", "unexpected_element"),
        ("«<api id='0' name='a>b'>»<name>T</name></api>", "structure", "unexpected_attribute"),
        ("<api id='0'>«<name x='1'>»T</name></api>", "structure", "unexpected_attribute"),
        ("«<api>»<name>T</name></api>", "structure", "missing_attribute"),
        ("«<api id='a'>»<name>T</name></api>", "structure", "invalid_id"),
        ("«<api id='1234567890'>»<name>T</name></api>", "structure", "invalid_id"),
        ("<api id='0'><name>T</name></api>«<api id='00'>»<name>T</name></api>", "structure", "duplicate_id"),
        ("«<api id='0'/>»", "structure", "empty_call"),
        ("«<api id='0'>»<name> </name></api>", "structure", "empty_call"),
        ("<api id='0'><name>T</name>«<name>»U</name></api>", "structure", "several_tools"),
        (one("«<param type='string'>»x</param>"), "structure", "missing_attribute"),
        (one("«<param name='a'>»x</param>"), "structure", "missing_type"),
        (one("<param name='a' type='string'>x«<b/>»</param>"), "structure", "unexpected_element"),
        (one("<param name='a' type='integer'>1«<item>»2</item></param>"), "structure", "unexpected_element"),
        (one("<param name='a' type='array'>«<field name='b' type='null'/>»</param>"),
         "structure", "unexpected_element"),
        (one("<param name='a' type='dict'>«<item type='null'/>»</param>"), "structure", "unexpected_element"),
        (one("«<param name='a' type='array'>»1, 2</param>"), "structure", "unexpected_text"),
        (one("«<param name='a' type='placeholder'>»API_RESPONSE_0</param>"), "structure", "missing_response"),
        (one("<param name='a'>«<response api_name='T'/>»</param>"), "structure", "missing_attribute"),
        (one("<param name='a'>«<response api_id='0'/>»</param>"), "structure", "missing_attribute"),
        (one("<param name='a'>«<response api_id='0' api_name='T' path='x'/>»</param>"),
         "structure", "unexpected_attribute"),
        (one("<param name='a'>«<response api_id='0' api_name='T'>»x</response></param>"),
         "structure", "unexpected_text"),
        (one("<param name='a'><response api_id='0' api_name='T'/>«<response api_id='0' api_name='T'/>»</param>"),
         "structure", "unexpected_element"),
        (one("«<param name='a'>»x<response api_id='0' api_name='T'/></param>"), "structure", "unexpected_text"),
        (one("<param name='a'>«<response api_id='0' api_name='T' type='x'/>»</param>"),
         "arguments", "invalid_reference"),
        (one("<param name='b' type='string'>é</param>«<param name='a' type='integer'>»abc</param>"),
         "arguments", "invalid_value"),
        (one("«<param name='a' type='integer'>»seven</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='integer'>»1e999</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='integer'>»٣</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='float'>»nan</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='float'>»1e999</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='boolean'>»yes</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='null'>»x</param>"), "arguments", "invalid_value"),
        (one("«<param name='a' type='eval'>»1 + 1</param>"), "arguments", "unknown_type"),
        (one("«<param name='a' type='os.system'>»true</param>"), "arguments", "unknown_type"),
        (one("<param name='a' type='null'/>«<param name='a' type='null'/>»"), "arguments", "duplicate_key"),
        # what is wrong with the tree of calls is said before what is wrong with arguments
        (one("<param name='a' type='eval'>x</param>«<foo/>»"), "structure", "unexpected_element"),
    ],
)  # fmt: skip
def test_failures_and_where_they_point(marked: str, stage: str, code: str) -> None:
    text = complete(marked.replace("«", "").replace("»", ""))
    failure = PARSER.parse(text)
    assert isinstance(failure, ParseFailure)
    assert (failure.stage, failure.code) == (stage, code), failure
    whole = complete(marked)
    assert failure.span == (whole.index("«"), whole.index("»") - 1), text[slice(*failure.span)]


def test_no_entity_is_ever_expanded() -> None:
    bomb = '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><none/>'
    for body in (bomb, f"</body>{bomb}<body>", f"{one('')}{bomb}", "&a;", one('<param name="&a;" type="null"/>')):
        failure = PARSER.parse(complete(body))
        assert isinstance(failure, ParseFailure)
        assert failure.code in ("forbidden_markup", "invalid_xml")


def test_limits() -> None:
    def nested(depth: int) -> str:
        return one(
            '<param name="a" type="array">' + '<item type="array">' * (depth - 1) + "</item>" * (depth - 1) + "</param>"
        )

    assert isinstance(PARSER.parse(complete(nested(63))), Program)
    for body, code in (
        (nested(64), "too_deep"),
        (nested(9000), "too_deep"),
        (one(f'<param name="a" type="integer">{"9" * 4301}</param>'), "number_too_long"),
        ("".join(f'<api id="{n}"><name>T</name></api>' for n in range(257)), "too_many_calls"),
    ):
        failure = PARSER.parse(complete(body))
        assert isinstance(failure, ParseFailure)
        assert (failure.stage, failure.code) == ("limit", code)
    elements = PARSER.parse(complete("<a>" * 50_000 + "</a>" * 50_000))
    assert isinstance(elements, ParseFailure)
    assert elements.code == "unexpected_element"


def test_no_recursion_error_with_limits_beyond_the_interpreter() -> None:
    parser = XmlParser(limits=ParseLimits(nesting=10**6))
    for depth in (100, 2_000, 5_000):
        body = '<param name="a" type="list">' + '<item type="list">' * depth + "</item>" * depth + "</param>"
        result = parser.parse(complete(one(body)))
        assert isinstance(result, Program) if depth == 100 else getattr(result, "code", "") == "too_deep"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (Program((Call(2, "T"), Call(1, "T"))), "ascend"),
        (Program((Call(0, ""),)), "empty"),
        (Program((Call(0, " T"),)), "white space"),
        (Program((Call(0, "T\x01"),)), "character"),
        (Program((Call(0, "T", {"a\x00": 1}),)), "character"),
        (Program((Call(0, "T", {"a": ["\ufffe"]}),)), "character"),
        (Program((Call(0, "T", {"a": "\ud800"}),)), "surrogate"),
        (Program((Call(0, "T", {"a": Reference(1)}),)), "no call"),
        (Program((Call(0, "T", {"a": Reference(0, ("x\x01",))}),)), "character"),
    ],
)
def test_what_cannot_be_expressed(program: Program, reason: str) -> None:
    with pytest.raises(CannotExpress, match=reason):
        PARSER.render(program)


def test_rendered_body_is_xml_to_another_reader() -> None:
    arguments = {'a"<>&\t\r\n': " \r\n<&>]]>\t", "b": [True, None, 2**70, 1e300, {"c": Reference(0, ("x y", 1))}]}
    text = PARSER.render(Program((Call(0, "T", arguments),)))
    body = text[text.index('return="one">') + 13 : text.index("</tool_call>")]
    document = minidom.parseString(f"<r>{body}</r>")
    first = document.getElementsByTagName("param")[0]
    assert first.getAttribute("name") == 'a"<>&\t\r\n'
    assert first.firstChild is not None
    assert first.firstChild.nodeValue == arguments['a"<>&\t\r\n']
    assert calls(body)[0].arguments == arguments
    assert "</tool_call>" in PARSER.render(Program((Call(0, "T", {"a": "</tool_call>"}),)))[-12:]


def test_a_bare_reference_is_written_without_a_field() -> None:
    program = Program((Call(0, "T", {}), Call(1, "U", {"a": Reference(0), "b": Reference(0, ("x",))})))
    written = XmlParser().render(program)
    assert '<response api_id="0" api_name="T" type="placeholder"/>' in written
    assert '<response api_id="0" api_name="T" field="x" type="placeholder"/>' in written


def test_booleans_are_those_of_xml_schema() -> None:
    written = [f'<param name="p{text}" type="boolean">{text}</param>' for text in ("true", "false", "1", "0")]
    body = f'<api id="0"><name>T</name>{"".join(written)}</api>'
    found = XmlParser().parse(f'<think></think><tool_call return="one">{body}</tool_call>')
    assert isinstance(found, Program), found
    assert [*found.calls[0].arguments.values()] == [True, False, True, False]
    assert [type(value) for value in found.calls[0].arguments.values()] == [bool] * 4
