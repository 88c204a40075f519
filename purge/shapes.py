"""Checking raw values against a dataclass: every fault at once, each with its path.

The manifest's own sections and the adapters' ``Settings`` are plain frozen dataclasses; pydantic
reads them here, and only here, so that it is imported no earlier than something is checked. Types
are taken strictly, as they are in JSON: ``"25"`` is no number and ``1`` is no truth value. A field
name that ends in an underscore is written without it. No sentence made here holds a value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args, get_type_hints

from purge.errors import UsageFault

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

T = TypeVar("T")
Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, and a sentence. ``at_key``: it is the key that is wrong."""

    path: Steps
    sentence: str
    at_key: bool = False


class ShapeFault(UsageFault):
    """Raw values do not fit a dataclass. ``faults`` lists everything that is wrong."""

    code = "settings"

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(
            " ".join(f"{dotted(fault.path)}: {fault.sentence}" for fault in self.faults)
        )


def dotted(path: Steps) -> str:
    """Return a path as people write it: ``sites.notes.text[0]``."""
    written = ""
    for part in path:
        written += f"[{part}]" if isinstance(part, int) else f".{part}" if written else part
    return written


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the most similar known name, or nothing."""
    from difflib import get_close_matches

    by_folded = {other.casefold(): other for other in known}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return f" Did you mean '{by_folded[close[0]]}'?" if close else ""


def field_names(shape: type) -> tuple[str, ...]:
    """Return the keys of a dataclass as they are written in a manifest."""
    return tuple(_written(field.name) for field in fields(shape) if field.init)


def validate(shape: type[T], raw: Mapping[str, object], also: Iterable[str] = ()) -> T:
    """Make a ``shape`` from raw values.

    Args:
        shape: a dataclass.
        raw: what was read from YAML. Strings that came from the environment (anything that is a
            subclass of ``str``) may stand for a number or a truth value.
        also: further known keys, only for suggestions.

    Raises:
        ShapeFault: with everything that is wrong.
    """
    from pydantic import ValidationError

    adapter = _adapter(shape)
    try:
        return adapter.validate_json(json.dumps(raw), strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
    mended = _convert_filled_in(raw, details)
    if mended is not None:
        try:
            return adapter.validate_json(json.dumps(mended), strict=True)
        except ValidationError as error:
            details = error.errors(include_url=False)
    raise ShapeFault(_faults(shape, raw, details, tuple(also)))


def describe(shape: type, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the JSON Schema of a dataclass and the definitions that it refers to.

    Args:
        shape: a dataclass; ``field(metadata={"description": ...})`` describes a key.
        prefix: what the names of the definitions begin with, so that those of several shapes can
            stand side by side under ``$defs``.
    """
    schema = _adapter(shape).json_schema(ref_template=f"#/$defs/{prefix}{{model}}")
    _drop_titles(schema)
    definitions = {prefix + name: inner for name, inner in schema.pop("$defs", {}).items()}
    return schema, definitions


def _drop_titles(schema: object) -> None:
    """Take out the titles that pydantic makes from names; editors show them before the text."""
    if isinstance(schema, list):
        for inner in schema:
            _drop_titles(inner)
    elif isinstance(schema, dict):
        if isinstance(schema.get("title"), str):
            del schema["title"]
        for key, inner in schema.items():
            if key not in ("default", "const", "enum"):
                _drop_titles(inner)


_ADAPTERS: Final[dict[type, Any]] = {}


def _adapter(shape: type[T]) -> TypeAdapter[T]:
    from pydantic import TypeAdapter

    if shape not in _ADAPTERS:
        _forbid_extra(shape)
        _ADAPTERS[shape] = TypeAdapter(shape)
    made: TypeAdapter[T] = _ADAPTERS[shape]
    return made


def _written(name: str) -> str:
    return name.rstrip("_")


def _forbid_extra(shape: object) -> None:
    """Let pydantic refuse unknown keys in a dataclass and in those within it.

    ``__pydantic_config__`` on the class is pydantic's documented way for standard dataclasses; it
    cannot be handed over from outside, and an adapter should not have to know of it.
    """
    if isinstance(shape, type) and is_dataclass(shape):
        if "__pydantic_config__" not in vars(shape):
            config = {"extra": "forbid", "alias_generator": _written}
            shape.__pydantic_config__ = config  # type: ignore[attr-defined]  # read by pydantic
            for hint in get_type_hints(shape, include_extras=False).values():
                _forbid_extra(hint)
        return
    for inner in get_args(shape):
        _forbid_extra(inner)


_CONVERSIONS: Final[Mapping[str, Any]] = {
    "int_type": int,
    "float_type": float,
    "bool_type": {"true": True, "false": False}.__getitem__,
}


def _convert_filled_in(
    raw: Mapping[str, object], details: Sequence[ErrorDetails]
) -> Mapping[str, object] | None:
    """Return ``raw`` with text from the environment turned into the numbers that were expected,
    or ``None`` where there is nothing to turn."""
    made: Any = None
    for detail in details:
        path, value = _walk(raw, detail["loc"])
        convert = _CONVERSIONS.get(detail["type"])
        if convert is None or not isinstance(value, str) or type(value) is str or not path:
            continue
        try:
            converted = convert(str(value))
        except (ValueError, KeyError):
            continue
        if made is None:
            made = json.loads(json.dumps(raw))
        target = made
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = converted
    return made  # type: ignore[no-any-return]  # what json.loads makes of a mapping is a dict


def _walk(raw: object, location: Sequence[str | int]) -> tuple[Steps, object]:
    """Return the part of an error's location that is a path in ``raw``, and what stands there.

    Between the keys, pydantic names the branches of unions; those are no keys and are dropped.
    """
    path: list[str | int] = []
    value: Any = raw
    for part in location:
        is_key = isinstance(value, Mapping) and part in value
        if is_key or (isinstance(value, list) and isinstance(part, int) and part < len(value)):
            value = value[part]
            path.append(part)
    return tuple(path), value


def _faults(
    shape: type, raw: object, details: Sequence[ErrorDetails], also: tuple[str, ...]
) -> list[Fault]:
    wrong_type: dict[Steps, list[str]] = {}
    faults: list[Fault] = []
    for detail in details:
        kind = detail["type"]
        path, value = _walk(raw, detail["loc"])
        last = detail["loc"][-1] if detail["loc"] else ""
        if kind == "unexpected_keyword_argument":
            known = _keys_at(shape, path[:-1]) + (also if len(path) == 1 else ())
            faults.append(Fault(path, f"unknown key.{nearest(str(last), known)}", at_key=True))
        elif kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
            faults.append(Fault((*path, last), "is missing."))
        elif kind in _TYPE_NAMES:
            wrong_type.setdefault(path, []).append(_TYPE_NAMES[kind])
        else:
            faults.append(Fault(path, _sentence(detail, value)))
    for path, names in wrong_type.items():
        # In a union, the branch that got furthest says what is wrong; the others only say that
        # they are not meant.
        if not any(fault.path[: len(path)] == path for fault in faults) and not any(
            len(other) > len(path) and other[: len(path)] == path for other in wrong_type
        ):
            faults.append(Fault(path, _wrong_type(list(dict.fromkeys(names)), _walk(raw, path)[1])))
    return faults


_TYPE_NAMES: Final[Mapping[str, str]] = {
    "string_type": "text",
    "path_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "none_required": "nothing",
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), "a list"),
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type"), "a mapping (key: value)"),
}


_BOUNDS: Final[Mapping[str, str]] = {
    "greater_than_equal": "at least",
    "greater_than": "more than",
    "less_than_equal": "at most",
    "less_than": "less than",
}


def _wrong_type(names: Sequence[str], value: object) -> str:
    wanted = " or ".join(name for name in names if name != "nothing")
    if value is None:
        return f"is empty; it must be {wanted}."
    hint = ""
    if list(names) == ["text"] and isinstance(value, (bool, int, float)):
        hint = " Put it in quotes."
    return f"must be {wanted}.{hint}"


def _sentence(detail: ErrorDetails, value: object) -> str:
    kind = detail["type"]
    context = detail.get("ctx", {})
    if kind in ("enum", "literal_error"):
        expected = str(context.get("expected", "")).replace("'", "")
        known = [word for part in expected.split(" or ") for word in part.split(", ")]
        hint = nearest(value, known) if isinstance(value, str) and type(value) is str else ""
        return f"must be one of: {', '.join(known)}.{hint}"
    if kind in ("string_too_short", "too_short") and context.get("min_length") == 1:
        return "may not be empty."
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind]} {next(iter(context.values()))}."
    if kind in ("value_error", "assertion_error") and isinstance(context.get("error"), Exception):
        sentence = str(context["error"])
    else:
        sentence = detail["msg"].replace("Input should", "should").strip()
    return sentence if sentence.endswith((".", "!", "?")) else sentence + "."


def _keys_at(shape: object, path: Steps) -> tuple[str, ...]:
    """Return the keys that are known at ``path`` below ``shape``, of every branch of a union."""
    if isinstance(shape, type) and is_dataclass(shape):
        if not path:
            return field_names(shape)
        hints = get_type_hints(shape)
        named = [hint for name, hint in hints.items() if _written(name) == path[0]]
        return tuple(key for hint in named for key in _keys_at(hint, path[1:]))
    if isinstance(shape, type) and issubclass(shape, (str, Enum, PurePath)):
        return ()
    origin_is_collection = isinstance(getattr(shape, "__origin__", None), type) and issubclass(
        getattr(shape, "__origin__", object), Collection
    )
    rest = path[1:] if origin_is_collection and path else path
    return tuple(key for inner in get_args(shape) for key in _keys_at(inner, rest))
