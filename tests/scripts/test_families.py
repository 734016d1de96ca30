"""The table of families in the docs is what comes out today: a sample of it, tried again."""

import re
from importlib.metadata import version

import pytest

from scripts.families import TABLE, try_family
from scripts.tiny import Family

TEXT = TABLE.read_text("utf-8")
OUTCOMES = ("exact", "wrong", "refused", "not built")

# One or two of each kind: every term, every reason to refuse.
SAMPLE = (
    "albert",
    "bart",
    "bert",
    "bloom",
    "cohere2",
    "deberta-v2",
    "deepseek_v3",
    "doge",
    "falcon_h1",
    "gemma2",
    "gemma3_text",
    "glm_moe_dsa",
    "gpt2",
    "gpt_oss",
    "granite_swa",
    "jamba",
    "llama",
    "longt5",
    "mamba",
    "marian",
    "modernbert",
    "opt",
    "qwen3_moe",
    "qwen3_next",
    "roberta",
    "t5",
    "xlnet",
)


def rows(outcome: str) -> list[Family]:
    """Those with that outcome in the table."""
    chosen = next(part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE) if part.lower().startswith(outcome))
    found = re.findall(r"^\| ([\w.-]+) \| (\w+) \|", chosen, flags=re.MULTILINE)
    return [Family(name, model_class) for name, model_class in found if model_class != "class"]


def test_the_table_is_of_the_transformers_that_is_installed() -> None:
    assert f"transformers {version('transformers')}" in TEXT, "make families writes the table anew"


def test_the_number_at_its_head_is_that_of_its_rows() -> None:
    counts = {outcome: len(rows(outcome)) for outcome in OUTCOMES}
    total = sum(counts.values())
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
    assert f"**{told}, of {total}.**" in TEXT
    assert counts["wrong"] == 0
    assert counts["exact"] >= 300


@pytest.mark.parametrize("name", SAMPLE)
def test_a_family_comes_out_as_the_table_says(name: str) -> None:
    expected = {family: outcome for outcome in OUTCOMES for family in rows(outcome) if family.name == name}
    assert expected
    for family, outcome in expected.items():
        result = try_family(family)
        assert result.outcome == outcome, result.reason
