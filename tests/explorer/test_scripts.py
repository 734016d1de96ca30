"""The browser's modules, tested one by one in Node; what Python packs for them is written here just before."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.explorer.atlas_payload import pack_atlas
from attention_viz.explorer.axes import PackedAxes
from attention_viz.trace.spelling import _BYTES, set_apart  # pyright: ignore[reportPrivateUsage]
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Trace
from scripts.javascript import NODE
from tests.explorer.long_texts import write_long, write_recording
from tests.explorer.opened_heads import write_opened

FOLDER = Path(__file__).parent / "js"
TESTED = sorted(FOLDER.glob("*.test.js"))


def heads_of(trace: Trace, stream: str, layer: int) -> list[dict[str, Any]]:
    """Weights, blocked cells and sums of each head, as the trace has them."""
    call = trace.attention(layer, stream)
    weights = call.weights.double().numpy()
    allowed = np.ones(weights.shape, bool) if call.allowed is None else np.broadcast_to(call.allowed, weights.shape)
    return [
        {"weights": one.tolist(), "blocked": (~open_cells).tolist(), "sums": one.sum(-1).tolist()}
        for one, open_cells in zip(weights, allowed, strict=True)
    ]


def bytes_of(text: str, size: int) -> Tokens:
    """Cut a text into pieces of so many bytes, as byte-level BPE without merges writes them."""
    letters = {byte: letter for letter, byte in _BYTES.items()}
    every = [letters[byte] for byte in text.encode()]
    pieces = ["".join(every[at : at + size]) for at in range(0, len(every), size)]
    return Tokens(tuple(pieces), spelling=("byte-level",) * len(pieces))


def named_rows() -> list[Tokens]:
    """Rows of tokens that repeat: words, pieces, signs, scripts, bytes, special tokens and patches."""
    texts = (
        "The cat and the CAT",
        "The · the ‿ · ·the",
        "ΟΔΟΣ οδος Straße STRASSE İ i̇",
        "السلام عليكم السلام",
        "שלום bank שלום bank",
        "我 爱 我",
        "👩‍👩‍👧 é 👩‍👩‍👧 e\u0301 é",
    )
    words = [Tokens.of_labels(text.split()) for text in texts]
    whole = "".join(texts)
    wordpiece = ("[CLS]", "bank", "##er", "er", "[SEP]", "Bank", "##ER", "[SEP]", "[PAD]", "[PAD]")
    special = tuple(label.startswith("[") for label in wordpiece)
    placed = Tokens(("[CLS]", "0,0", "0,1", "the", "the"), place=(None, (0, 0), (0, 1), None, None))
    sentencepiece = Tokens(("▁the", "the", "▁<0xE0>", "<0xB8>", "<0x81>", "▁the"), spelling=("sentencepiece",) * 6)
    return [
        *words,
        *(bytes_of(whole, size) for size in (1, 2, 5)),
        Tokens(wordpiece, special=special, spelling=("wordpiece",) * len(wordpiece)),
        Tokens.of_labels(["the"] * 120),
        placed,
        sentencepiece,
    ]


def write_names(folder: Path) -> None:
    axes = PackedAxes(0)
    rows = named_rows()
    found = [
        {
            "axis": axes.entries[axes.add(tokens, "encoder")],
            **{name: list(map(set_apart, getattr(tokens, name))) for name in ("names", "numbered")},
            "occurrences": list(tokens.occurrences),
        }
        for tokens in rows
    ]
    (folder / "names.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def fixtures(many_kinds: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fixtures")
    streams = {
        stream: [heads_of(many_kinds, stream, layer) for layer in range(many_kinds.layer_count(stream))]
        for stream in many_kinds.streams
    }
    labels = list(many_kinds.query_tokens("encoder").labels)
    (folder / "many_kinds.bin").write_bytes(pack(many_kinds))
    (folder / "many_kinds.json").write_text(json.dumps({"labels": labels, "streams": streams}))
    tables = (av.head_table(many_kinds, "decoder"), av.roles(many_kinds, "decoder"))
    packed = pack_atlas(many_kinds, "decoder", *tables)
    (folder / "atlas.bin").write_bytes(packed)
    (folder / "atlas.json").write_text(json.dumps([head for layer in streams["decoder"] for head in layer]))
    write_long(folder)
    write_recording(folder)
    write_opened(folder)
    write_names(folder)
    return folder


def run_tests(test: Path, fixtures: Path) -> subprocess.CompletedProcess[str]:
    command = [str(NODE), "--test-reporter=tap", str(test)]
    environment = {**os.environ, "ATTENTION_VIZ_FIXTURES": str(fixtures)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("test", TESTED, ids=lambda test: test.name)
def test_the_module_does_what_its_tests_claim(test: Path, fixtures: Path) -> None:
    done = run_tests(test, fixtures)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.M)
    assert passed and int(passed[1]) == len(re.findall(r"^test\(", test.read_text(), re.M))


def test_a_claim_that_does_not_hold_is_heard_of(tmp_path: Path) -> None:
    planted = tmp_path / "planted.test.mjs"
    planted.write_text('import {test} from "node:test";\ntest("wrong", () => { throw new Error("planted"); });\n')
    done = run_tests(planted, tmp_path)
    assert done.returncode != 0
    assert "planted" in done.stdout


def test_each_module_of_pure_data_has_tests() -> None:
    data = Path(av.__file__).parent / "explorer" / "static" / "data"
    assert {path.stem for path in data.glob("*.js")} <= {test.name.partition(".")[0] for test in TESTED}
