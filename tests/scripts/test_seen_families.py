"""The table of families of pictures and sound is what comes out today: a sample of it, tried again."""

import re

import pytest

from scripts.seen_families import TABLE, try_seen
from scripts.tiny import Family
from scripts.trying import SEEN

TEXT = TABLE.read_text("utf-8").partition(SEEN)[2]
OUTCOMES = ("exact", "wrong", "refused", "not built")

# Patches, frames, a text beside a picture or a sound, two of them compared, an encoder–decoder of sound.
# Of some the modules keep their weights to themselves.
EXACT = (
    "clip",
    "detr",
    "dinov2",
    "dots3_note",
    "git",
    "internvl",
    "llava",
    "minicpmv4_6",
    "qwen2_audio",
    "qwen2_vl",
    "qwen3_asr",
    "segformer",
    "siglip",
    "wav2vec2",
    "whisper",
)
# Each with what its refusal has to say.
REFUSED = {
    "convnext": "has convolutions, but computes no attention",
    "deformable_detr": "at sampled points",
    "seggpt": "the parts may be windows or several images",
}


def rows(outcome: str) -> list[Family]:
    """Those with that outcome in the table."""
    chosen = next(part for part in re.split(r"^## ", TEXT, flags=re.MULTILINE) if part.lower().startswith(outcome))
    found = re.findall(r"^\| ([\w.-]+) \| (\w+) \|", chosen, flags=re.MULTILINE)
    return [Family(name, model_class) for name, model_class in found if model_class != "class"]


def test_the_number_at_its_head_is_that_of_its_rows_and_none_is_wrong() -> None:
    counts = {outcome: len(rows(outcome)) for outcome in OUTCOMES}
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES)
    head = re.sub(r" \(\d+ with a part left out\)", "", TEXT)
    assert f"**{told}, of {sum(counts.values())}.**" in head
    assert counts["wrong"] == 0
    assert counts["exact"] >= 245


@pytest.mark.parametrize("name", EXACT)
def test_a_family_is_as_exact_as_the_table_says(name: str) -> None:
    (family,) = (one for one in rows("exact") if one.name == name)
    found = try_seen(family)
    assert found.outcome == "exact", found.reason
    row = next(line for line in TEXT.splitlines() if line.startswith(f"| {name} |"))
    assert f"| {found.reads} | {', '.join(found.streams)} | {found.route} |" in row


@pytest.mark.parametrize(("name", "told"), REFUSED.items())
def test_a_family_is_refused_by_name_as_the_table_says(name: str, told: str) -> None:
    (family,) = (one for one in rows("refused") if one.name == name)
    found = try_seen(family)
    assert found.outcome == "refused"
    assert told in found.reason
    assert family.model_class.removesuffix("Model") in found.reason
