"""Whether calls are the allowed ones, as BFCL's ``ast_checker`` says it: verdict and class of error.

What is allowed is compiled once per entry (:func:`compiled`), so that answers are quick to judge. The rules, oddities
included, are the original's; ``docs/bfcl.md`` lists them. Where the original raises, so that its program ends, the
error is :data:`RAISED`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import define

from callwright_plugins.bfcl.single_turn import java_values, javascript_values

Language = Literal["Python", "Java", "JavaScript"]
#: A decoded call: one name with its arguments.
Calls = Sequence[Mapping[str, Mapping[str, Any]]]
#: What a check of a value says: the class of the error, empty where there is none.
Check = Callable[[Any], str]

RAISED: Final = "checker:raised"
MALFORMED: Final = "ast_decoder:decoder_wrong_output_format"
PYTHON_TYPES: Final[Mapping[str, type]] = {
    "string": str, "integer": int, "float": float, "boolean": bool, "array": list, "tuple": list, "dict": dict,
    "any": str,
}  # fmt: skip
_SIMPLE: Final = "simple_function_checker:"
_PARALLEL: Final = "parallel_function_checker_no_order:"
_DROPPED: Final = str.maketrans("", "", " ,./-_*^")
#: What checks of malformed gold values may raise: the original ends there.
_FAILURES: Final = (TypeError, KeyError, AttributeError, IndexError, ValueError, ArithmeticError, NotImplementedError)


def plain(text: str) -> str:
    """A text as it is compared: without spaces and ``,./-_*^``, in lower case, with double quotes."""
    return text.translate(_DROPPED).lower().replace("'", '"')


def _plain(value: Any) -> Any:
    return plain(value) if type(value) is str else value


@define(eq=False)
class Rule:
    """What one gold call allows: of its ``function`` the arguments that ``allowed`` has, a check for each parameter.

    A check is compiled when a value needs it: most values are an allowed one as it stands, and most entries are judged
    once.
    """

    function: Mapping[str, Any]
    allowed: Mapping[str, Any]
    language: Language
    checks: dict[str, Check] | None = None

    def error(self, call: Mapping[str, Mapping[str, Any]]) -> str:
        """The class of the error of a call; empty if it is allowed. Raises what the original raises."""
        function = self.function
        given = call.get(function["name"])
        if given is None:
            return _SIMPLE + "wrong_func_name"
        parameters = function["parameters"]
        for name in parameters["required"]:
            if name not in given:
                return _SIMPLE + "missing_required"
        known, allowed, checks = parameters["properties"], self.allowed, self.checks
        for name, value in given.items():
            check = None if checks is None else checks.get(name)
            if check is None:
                if name not in known or name not in allowed:
                    return _SIMPLE + "unexpected_param"
                if self.language == "Python" and _as_it_stands(known[name], allowed[name], value):
                    continue
                check = _check(known[name], allowed[name], self.language)
                if checks is None:
                    checks = self.checks = {}
                checks[name] = check
            found = check(value)
            if found:
                return found
        for name, values in allowed.items():
            if name not in given and "" not in values:
                return _SIMPLE + "missing_optional"
        return ""


def _as_it_stands(parameter: Mapping[str, Any], allowed: Any, value: Any) -> bool:
    """Whether a value of the documented type equals an allowed one, so that it certainly passes its check."""
    kind = type(value)
    if type(allowed) is not list or value not in allowed:
        return False
    declared = parameter.get("type")
    if kind is str or kind is int or kind is bool or kind is float:
        return PYTHON_TYPES.get(declared) is kind if type(declared) is str else False
    if kind is not list or declared != "array":
        return False
    inner = parameter.get("items")
    of = PYTHON_TYPES.get(inner["type"]) if type(inner) is dict and type(inner.get("type")) is str else None
    if of is None or of is dict or of is list:
        return False
    return all(type(one) is of for one in value) and all(type(one) is list or one == "" for one in allowed)


@define(eq=False)
class Rules:
    """What an entry allows. ``None`` in ``rules`` is a gold call of a function that the entry does not offer."""

    kind: Literal["simple", "multiple", "parallel"]
    rules: Sequence[Rule | None]

    def error(self, calls: Any) -> str:
        """The class of the error of decoded calls, whatever they are; empty if they are right."""
        if not well_formed(calls):
            return MALFORMED
        try:
            return self._error(calls)
        except _FAILURES:
            return RAISED

    def _error(self, calls: Calls) -> str:
        if self.kind == "parallel":
            return self._unordered(calls)
        if self.kind == "multiple":
            if len(calls) != len(self.rules):
                return "multiple_function_checker:wrong_count"
        elif len(calls) != 1:
            return _SIMPLE + "wrong_count"
        rule = self.rules[0]
        return RAISED if rule is None else rule.error(calls[0])

    def _unordered(self, calls: Calls) -> str:
        if len(calls) != len(self.rules):
            return _PARALLEL + "wrong_count"
        left = list(calls)
        for rule in self.rules:
            if rule is None:
                return RAISED
            for place, call in enumerate(left):
                if not rule.error(call):
                    del left[place]
                    break
            else:
                return _PARALLEL + "cannot_find_match"
        return ""


def well_formed(calls: Any) -> bool:
    """Whether it is a list of objects of one name with its arguments."""
    if type(calls) is not list:
        return False
    for call in calls:
        if type(call) is not dict or len(call) != 1:
            return False
        for arguments in call.values():
            if type(arguments) is not dict:
                return False
    return True


def compiled(
    kind: Literal["simple", "multiple", "parallel"],
    functions: Sequence[Mapping[str, Any]],
    gold: Sequence[Mapping[str, Mapping[str, Any]]],
    language: Language,
) -> Rules:
    """The rules of an entry, of its functions and what its ``ground_truth`` allows."""
    made: list[Rule | None] = []
    for call in gold:
        for name, allowed in call.items():
            if kind == "simple":
                made.append(Rule(functions[0], allowed, language))
            else:
                offered = next((function for function in functions if function["name"] == name), None)
                made.append(None if offered is None else Rule(offered, allowed, language))
            break
    return Rules(kind, made)


# A value --------------------------------------------------------------------------------------------------------------


def _check(parameter: Mapping[str, Any], allowed: Any, language: Language) -> Check:
    try:
        return _check_of(parameter, allowed, language)
    except _FAILURES as error:
        return _raising(error)


def _raising(error: Exception) -> Check:
    def check(value: Any) -> str:
        raise error

    return check


def _check_of(parameter: Mapping[str, Any], allowed: Any, language: Language) -> Check:
    declared: str = parameter["type"]
    types: Mapping[str, type] = {
        "Python": PYTHON_TYPES, "Java": java_values.TYPES, "JavaScript": javascript_values.TYPES
    }[language]  # fmt: skip
    expected = types[declared]
    has_inner = declared in (("array", "tuple") if language == "Python" else ("Array", "ArrayList", "array"))
    inner_name = parameter["items"]["type"] if has_inner else None
    inner = None if inner_name is None else types[inner_name]
    typed = _type_check(expected, inner, allowed)
    compare = _comparison(expected, inner, allowed)
    is_float = language == "Python" and declared == "float"
    is_tuple = declared == "tuple"

    if language == "Python":

        def check(value: Any) -> str:
            if is_float and type(value) is int:
                value = float(value)
            elif is_tuple and type(value) is tuple:
                value = list(value)
            error, variable = typed(value)
            if error:
                return error
            if variable:
                return "" if value in allowed else "value_error:others"
            return compare(value)

        return check

    convert = java_values.java_value if language == "Java" else javascript_values.javascript_value
    wrong = "type_error:java" if language == "Java" else "type_error:js"

    def check_source(value: Any) -> str:
        if type(value) is not str:
            return wrong
        read = convert(value, declared, inner_name)
        error, variable = typed(read)
        if error:
            return error
        if variable:
            return "" if read in allowed else "value_error:others"
        return compare(read)

    return check_source


def _first_type(allowed: Any) -> type | None:
    """The type of the first allowed value; ``None`` where there is only the empty text, for leaving out."""
    for one in allowed:
        if one != "":
            return type(one)
    return None


def _type_check(expected: type, inner: type | None, allowed: Any) -> Callable[[Any], tuple[str, bool]]:
    """The class of a type's error, and whether the value stands for a variable, so that it is compared as it is."""
    held = _first_type(allowed)
    variable = held is not None and held is not expected
    right, as_variable, wrong = ("", variable), ("", True), ("type_error:simple", False)
    if inner is None:

        def simple(value: Any) -> tuple[str, bool]:
            kind = type(value)
            if kind is expected:
                return right
            return as_variable if held is not None and kind is held else wrong

        return simple

    # An allowed value that is no list lets every list pass, where those before it do not.
    anything = any(type(one) is not list for one in allowed)
    inners = [(inner, _first_type(one)) for one in allowed if type(one) is list]

    def nested(value: Any) -> tuple[str, bool]:
        kind = type(value)
        if kind is expected:
            if anything:
                return right
            for pair in inners:
                if all(type(one) in pair for one in value):
                    return right
            return ("type_error:nested", True) if held is not None and kind is held else wrong
        return as_variable if held is not None and kind is held else wrong

    return nested


def _comparison(expected: type, inner: type | None, allowed: Any) -> Check:
    if expected is dict:
        return _objects(allowed)
    if expected is list and inner is dict:
        return _lists_of_objects(allowed)
    if expected is str:
        texts = frozenset(plain(one) for one in allowed if type(one) is str)
        return lambda value: "" if plain(value) in texts else "value_error:string"
    if expected is list:
        lists = [[_plain(item) for item in one] for one in allowed]
        return lambda value: "" if [_plain(item) for item in value] in lists else "value_error:list/tuple"
    return lambda value: "" if value in allowed else "value_error:others"


def _objects(allowed: Any) -> Check:
    """Objects: of several allowed ones the last says what is wrong."""
    objects = [one for one in allowed if one != ""]

    def check(value: Any) -> str:
        error = "dict_checker:unclear"
        for one in objects:
            error = _object_error(value, one)
            if not error:
                return ""
        return error

    return check


def _object_error(value: Mapping[str, Any], allowed: Mapping[str, Any]) -> str:
    error = ""
    for key, found in value.items():
        if key not in allowed:
            error = "value_error:dict_key"
            break
        if _plain(found) not in [_plain(one) for one in allowed[key]]:
            error = "value_error:dict_value"
            break
    for key, values in allowed.items():
        if key not in value and "" not in values:
            return "value_error:dict_key"
    return error


def _lists_of_objects(allowed: Any) -> Check:
    """Lists of objects in their order. A list of another length leaves the error of what came before it behind."""
    choices = [(one, [_objects([item]) for item in one] if type(one) is list else None) for one in allowed]

    def check(value: Any) -> str:
        error = "list_dict_checker:unclear"
        for one, checks in choices:
            if len(value) != len(one):
                error = "value_error:list_dict_count"
                continue
            found = ""
            for place, item in enumerate(value):
                found = (checks[place] if checks is not None else _objects([one[place]]))(item)
                if found:
                    break
            if not found:
                return ""
            error = found
        return error

    return check
