"""Adversarial completions in xml. The same damage is worth the same as in json (ours); what only XML has is below."""

from __future__ import annotations

from adversarial_completions import Row, block, row


def param(name: str, inner: str, totals: str, why: str) -> Row:
    """The parameter of the task ``number``, of which the gold is ``<param name="code" type="integer">255</param>``."""
    return xml(name, f'<api id="0"><name>Lookup</name>{inner}</api>', totals, why)


def typed(name: str, kind: str, text: str, totals: str, why: str) -> Row:
    return param(name, f'<param name="code" type="{kind}">{text}</param>', totals, why)


def xml(name: str, body: str, totals: str, why: str, task: str = "number") -> Row:
    return row("xml", name, task, block(body), totals, why)


def words(name: str, text: str, totals: str, why: str) -> Row:
    return xml(
        name,
        f'<api id="0"><name>Echo</name><param name="text" type="string">{text}</param></api>',
        totals,
        why,
        "words",
    )


def chain(name: str, place: str, rows: str, totals: str, why: str) -> Row:
    body = (
        f'<api id="0"><name>Locate</name></api><api id="1"><name>Find</name><param name="place"{place}</param></api>'
        f'<api id="2"><name>Filter</name><param name="rows">{rows}</param><param name="least" type="float">4.5</param>'
        "</api>"
    )
    return xml(name, body, totals, why, "chain")


PLACE = '><response api_id="0" api_name="Locate" type="placeholder"/>'
ROWS_REF = '<response api_id="1" api_name="Find" type="placeholder"/>'
GOLD = '<api id="0"><name>Lookup</name><param name="code" type="integer">255</param></api>'
MALFORMED = "2.2: not well formed, so 0; no calls for 3.3: -3. "
UNREADABLE = (
    "ours: the value is not what its type says, so the arguments cannot be used: format only; no calls for 3.3: -3"
)
DANGLING = (
    "2.2: execution fails and nothing else; tier-strict gates on it; 3.3: one of seven points is lost, 6 * 6/7 - 2"
)

ROWS = [
    xml("gold", GOLD, "1 1 1 1 1 4 4", "A.1; 3.3: R = S"),
    chain("gold chain", PLACE, ROWS_REF, "1 1 1 1 1 4 4", "A.1 prints a <response> without a field"),
    # Values -----------------------------------------------------------------------------------------------------------
    typed(
        "255.0 as integer",
        "integer",
        "255.0",
        "1 1 1 1 1 4 4",
        "ours: the same damage is worth the same in each form; released: this form's integer is int(float(text))",
    ),
    typed("2.55e2 as integer", "integer", "2.55e2", "1 1 1 1 1 4 4", "ours: as in json; released: int(float(text))"),
    typed(
        "a fraction as integer",
        "integer",
        "255.5",
        ".375 .375 .375 .375 1/6 2 2",
        "ours: a number is judged by the schema, as in json; 2.2: one type mismatch",
    ),
    typed(
        "255 as float", "float", "255", "1 1 1 .975 1 4 4", "JSON Schema: 255.0 is an integer; released: a type error"
    ),
    typed("text for an integer", "string", "255", ".375 .375 .375 .375 1/6 2 2", "2.2: one type mismatch; as in json"),
    typed(
        "true for an integer",
        "boolean",
        "true",
        ".375 .375 .375 .4 1/6 2 2",
        "2.2: one type mismatch; released: a bool is an int of Python; as in json",
    ),
    typed("null for an integer", "null", "", ".375 .375 .375 .375 1/6 2 2", "2.2: one type mismatch; as in json"),
    typed("white space around a number", "integer", "\n 255 ", "1 1 1 1 1 4 4", "ours: it does not count"),
    typed("a character reference", "integer", "&#50;55", "1 1 1 1 1 4 4", "XML, 4.1"),
    typed("a comment inside of a number", "integer", "2<!-- two -->55", "1 1 1 1 1 4 4", "XML, 2.5: no character data"),
    typed("letters as integer", "integer", "abc", ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    typed("hexadecimal as integer", "integer", "0xFF", ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE),
    typed(
        "type eval",
        "eval",
        "__import__('os').getpid()",
        ".1 .1 .1 .1 1/6 -3 -3",
        UNREADABLE + "; never evaluated, as the released code does",
    ),
    typed("type os.system", "os.system", "true", ".1 .1 .1 .1 1/6 -3 -3", UNREADABLE + "; never imported"),
    typed(
        "5,000 digits", "integer", "9" * 5000, "0 0 0 0 0 -3 -3", MALFORMED + "ours: at most 4,300 digits, as in json"
    ),
    param(
        "no type", '<param name="code">255</param>', "0 0 0 0 0 -3 -3", MALFORMED + "A.1 prints a type around a value"
    ),
    param(
        "a parameter twice",
        '<param name="code" type="integer">1</param><param name="code" type="integer">255</param>',
        ".1 .1 .1 .1 1/6 -3 -3",
        "ours: nobody knows which counts, as in json",
    ),
    param(
        "an unknown attribute",
        '<param name="code" type="integer" unit="m">255</param>',
        "0 0 0 0 0 -3 -3",
        MALFORMED + "ours: what an attribute means is fixed",
    ),
    # XML --------------------------------------------------------------------------------------------------------------
    words("escaped", "R&amp;D &lt;b&gt;", "1 1 1 1 1 4 4", "XML, 2.4"),
    words("CDATA", "<![CDATA[R&D <b>]]>", "1 1 1 1 1 4 4", "XML, 2.7; ours: read"),
    words("a bare ampersand", "R&D &lt;b&gt;", "0 0 0 0 0 -3 -3", MALFORMED + "XML, 2.4"),
    words("a bare less-than", "R&amp;D <b>", "0 0 0 0 0 -3 -3", MALFORMED + "XML, 2.4"),
    words("an entity of its own", "&xxe;", "0 0 0 0 0 -3 -3", MALFORMED + "XML, 4.1: entities are declared"),
    words("NUL", "R&#0;", "0 0 0 0 0 -3 -3", MALFORMED + "XML, 2.2: no such character"),
    xml("a comment", f"<!-- one call -->{GOLD}", "1 1 1 1 1 4 4", "XML, 2.5; ours: read"),
    xml(
        "an entity bomb",
        '<!DOCTYPE b [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + GOLD,
        "0 0 0 0 0 -3 -3",
        MALFORMED + "ours: no declarations; nothing is expanded",
    ),
    xml(
        "an external entity",
        '<!DOCTYPE b [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + GOLD,
        "0 0 0 0 0 -3 -3",
        MALFORMED + "ours: no declarations; nothing is fetched",
    ),
    xml("a processing instruction", "<?php exit ?>" + GOLD, "0 0 0 0 0 -3 -3", MALFORMED + "ours: none are read"),
    xml("an element never closed", GOLD.replace("</api>", ""), "0 0 0 0 0 -3 -3", MALFORMED + "XML, 3"),
    # Trees ------------------------------------------------------------------------------------------------------------
    xml("empty body", "", "0 0 0 0 0 -3 -3", MALFORMED + "C, rule 14 in this form: <none/>"),
    xml("nothing is called", "<none/>", ".5 .1 .5 .5 1/6 -3 -3", "2.2: vacuously; 3.3: no <tool_call>, no match"),
    xml("none and a call", GOLD + "<none/>", "0 0 0 0 0 -3 -3", MALFORMED + "C, rule 14: one or the other"),
    xml("one id twice", GOLD + GOLD, "0 0 0 0 0 -3 -3", MALFORMED + "C, rule 4: unique keys"),
    xml("id is a letter", GOLD.replace('"0"', '"a"'), "0 0 0 0 0 -3 -3", MALFORMED + "C, rule 4: a numeric string"),
    xml("text beside a call", "First: " + GOLD, "0 0 0 0 0 -3 -3", MALFORMED + "A.1: <api> elements"),
    xml(
        "two names",
        GOLD.replace("<name>", "<name>Locate</name><name>"),
        "0 0 0 0 0 -3 -3",
        MALFORMED + "C, rule 7: exactly one API name",
    ),
    xml(
        "an empty name",
        GOLD.replace("Lookup", ""),
        "0 0 0 0 0 -3 -3",
        MALFORMED + "C, rule 7: an API name",
    ),
    xml("no name", '<api id="0"/>', "0 0 0 0 0 -3 -3", MALFORMED + "C, rule 7: exactly one API name"),
    xml(
        "an unknown tool",
        GOLD.replace("Lookup", "lookup"),
        ".1 .1 .1 .275 1/6 2 2",
        "2.2: one unknown name makes R_parse 0; released: only R_name, its parameter is unexpected; 3.3: 2 of 3",
    ),
    # References -------------------------------------------------------------------------------------------------------
    chain("the result of no call", PLACE, ROWS_REF.replace('"1"', '"7"'), ".4 .4 0 .4 1/6 22/7 22/7", DANGLING),
    chain(
        "its own result",
        PLACE.replace('"0" api_name="Locate"', '"1" api_name="Find"'),
        ROWS_REF,
        ".4 .4 0 .4 1/6 22/7 22/7",
        DANGLING,
    ),
    chain(
        "api_name contradicts api_id",
        PLACE,
        ROWS_REF.replace("Find", "Locate"),
        ".4 .4 0 .4 1/6 22/7 22/7",
        "ours: it refers to no call that there is; " + DANGLING,
    ),
    chain(
        "an api_id of ten digits",
        PLACE,
        ROWS_REF.replace('"1"', '"1000000000"'),
        ".4 .4 0 .4 1/6 22/7 22/7",
        "ours: a misspelt reference names no call, as in json; " + DANGLING,
    ),
    chain(
        "an api_id of letters",
        PLACE,
        ROWS_REF.replace('"1"', '"one"'),
        ".4 .4 0 .4 1/6 22/7 22/7",
        "ours: a misspelt reference names no call, as in json; " + DANGLING,
    ),
    chain(
        "a field that is no path",
        PLACE,
        ROWS_REF.replace("type=", 'field="rows..n" type='),
        ".4 .4 0 .4 1/6 22/7 22/7",
        "ours: a misspelt reference names no call, as in json; " + DANGLING,
    ),
    chain(
        "a field that does not exist",
        PLACE,
        ROWS_REF.replace("type=", 'field="nowhere" type='),
        ".4 .4 .4 .4 1/6 22/7 22/7",
        "2.2: execution fails and nothing else; 3.3: one of seven points is lost",
    ),
    chain(
        "no api_name", PLACE, ROWS_REF.replace(' api_name="Find"', ""), "0 0 0 0 0 -3 -3", MALFORMED + "A.1 prints it"
    ),
    chain(
        "a reference as text",
        ' type="string">API_RESPONSE_0',
        ROWS_REF,
        ".4 .4 .4 .4 1/6 4 4",
        "A.1: references are elements, so this is a place, which nobody knows; then Filter fails; 3.3: equal texts",
    ),
]
