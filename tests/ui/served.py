"""The app as an operator sets it up: with folders of models of its own, and a stand-in for the hub."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from transformers import BertConfig, BertModel

from scripts import serve
from tests.conftest import RUNNING, Server
from tests.inputs.test_text import byte_tokenizer, chatty
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

NAME = "somebody/tiny-bert"
LARGE = "somebody/large-bert"


@contextmanager
def app(folder: Path, pytestconfig: pytest.Config, **settings: str) -> Iterator[Server]:
    """The app under settings of an operator's."""
    port, log = serve.free_port(), folder / "log"
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        with log.open("wb") as file:
            process = serve.start(port, "--server.address=127.0.0.1", log=file)
    finally:
        os.environ.clear()
        os.environ.update(before)
    try:
        assert serve.wait_until_healthy(process, port), log.read_text()
        pytestconfig.stash[RUNNING] = Server(f"http://127.0.0.1:{port}", log)
        yield pytestconfig.stash[RUNNING]
    finally:
        serve.stop(process)


def save_models(place: Path) -> None:
    """Folders `allowed`, with a model of words, one that chats and a hybrid, and `outside`, where a link leads."""
    for folder in (place / "allowed" / "tiny-bert", place / "outside" / "secret-bert"):
        build("bert with a head").save_pretrained(folder)
        word_tokenizer().save_pretrained(folder)
    (place / "allowed" / "out").symlink_to(place / "outside" / "secret-bert")
    chat = chatty()
    assert chat.tokenizer is not None
    chat.hf_model.save_pretrained(place / "allowed" / "chat")
    chat.tokenizer.save_pretrained(place / "allowed" / "chat")
    hybrid = place / "allowed" / "hybrid"
    build("jamba", vocab_size=300, eos_token_id=None, bos_token_id=None).save_pretrained(hybrid)
    byte_tokenizer().save_pretrained(hybrid)


def save_large(folder: Path) -> None:
    """A model that takes some seconds to download."""
    sizes = {"hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    BertModel(BertConfig(vocab_size=120_000, **sizes)).save_pretrained(folder)
    word_tokenizer().save_pretrained(folder)
