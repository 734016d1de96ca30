"""Keys of JSON objects, with their types and meanings, and the JSON Schemas made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

DRAFT = "https://json-schema.org/draft/2020-12/schema"

KeyType = Literal["string", "integer", "number", "boolean", "array", "object"]


@dataclass(frozen=True)
class Key:
    """A key's type and meaning.

    Attributes:
        null: the value may be null, for a number that is missing.
        optional: the key may be missing.
        values: the allowed values; empty for any.
        within: the keys of an object, or of each object in an array.
        each: the type of each value in an array without `within`, or in an object of any keys.
        least: the smallest number.
        most: the largest number, or the most characters of a text.
        default: the value of a missing key, in words of JSON.
    """

    type: KeyType
    meaning: str
    null: bool = False
    optional: bool = False
    values: Sequence[str] = ()
    within: "Mapping[str, Key] | None" = None
    each: KeyType | None = None
    least: int | None = None
    most: int | None = None
    default: str | int | bool | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value."""
        found: dict[str, Any] = {"type": [self.type, "null"] if self.null else self.type}
        if self.meaning:
            found["description"] = self.meaning
        if self.values:
            found["enum"] = [*self.values, *[None] * self.null]
        found |= {} if self.default is None else {"default": self.default}
        limits = ("minLength", "maxLength") if self.type == "string" else ("minimum", "maximum")
        found |= {name: one for name, one in zip(limits, (self.least, self.most), strict=True) if one is not None}
        if self.type == "array":
            found["items"] = {"type": self.each} if self.within is None else object_schema(self.within)
        elif self.within is not None:
            found |= object_schema(self.within)
        elif self.each is not None:
            found["additionalProperties"] = {"type": self.each}
        return found


def object_schema(keys: Mapping[str, Key], patterns: Mapping[str, Key] | None = None) -> dict[str, Any]:
    """Return the JSON Schema of an object with these keys, keys of these patterns, and no others."""
    found: dict[str, Any] = {
        "type": "object",
        "properties": {name: key.schema() for name, key in keys.items()},
        "required": [name for name, key in keys.items() if not key.optional],
        "additionalProperties": False,
    }
    if patterns:
        found["patternProperties"] = {name: key.schema() for name, key in patterns.items()}
    return found


def text(meaning: str, **more: Any) -> Key:
    """Return the key of a text."""
    return Key("string", meaning, **more)


def whole(meaning: str, **more: Any) -> Key:
    """Return the key of a whole number."""
    return Key("integer", meaning, **more)


def number(meaning: str, **more: Any) -> Key:
    """Return the key of a finite number."""
    return Key("number", meaning, **more)


def flag(meaning: str, **more: Any) -> Key:
    """Return the key of a boolean."""
    return Key("boolean", meaning, **more)
