"""The command line's JSON, read as its schema says."""

import functools
import json
from typing import Any

from jsonschema import Draft202012Validator

from attention_viz.cli.answers.kinds import schema_of


@functools.cache
def validator_of(name: str) -> Draft202012Validator:
    """The check of one schema, which is a valid one itself."""
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def not_json(constant: str) -> None:
    raise AssertionError(f"{constant} isn't JSON")


def answer_of(out: str) -> dict[str, Any]:
    """A whole answer, validated."""
    answer = json.loads(out, parse_constant=not_json)
    validator_of(answer["schema"]).validate(answer)
    return answer


def result_of(out: str) -> dict[str, Any]:
    """An answer's result."""
    return answer_of(out)["result"]


def rows_of(out: str) -> list[dict[str, Any]]:
    """The rows of an answer's result."""
    return result_of(out)["rows"]
