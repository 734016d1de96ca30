"""A visitor who opens a folder that burns is refused; the models of all others come as if nothing were the matter."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import DistilBertConfig, DistilBertModel

import attention_viz as av
from attention_viz.models.loading import verdicts
from attention_viz.serving import models as sources
from attention_viz.serving import permissions as allowed
from attention_viz.serving import runs as serving
from attention_viz.serving.cache import SharedCache
from attention_viz.serving.settings import Settings
from attention_viz.sources.bounded.framing import Message
from attention_viz.sources.bounded.limits import Limits
from tests.models.families import build
from tests.models.loading.test_load_folder import word_tokenizer

POSITIONS = 8_000_000


@pytest.fixture
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An allowed folder with a model, and one that computes a table for minutes although its file holds it."""
    build("bert with a head").save_pretrained(tmp_path / "honest")
    config = DistilBertConfig(
        vocab_size=97, dim=2, n_heads=1, hidden_dim=2, n_layers=1, sinusoidal_pos_embds=True, max_position_embeddings=64
    )
    DistilBertModel(config).save_pretrained(burning := tmp_path / "burning")
    changed = json.loads((burning / "config.json").read_text()) | {"max_position_embeddings": POSITIONS}
    (burning / "config.json").write_text(json.dumps(changed))
    tensors = load_file(burning / "model.safetensors")
    tensors["embeddings.position_embeddings.weight"] = torch.zeros(POSITIONS, 2, dtype=torch.uint8)
    save_file(tensors, burning / "model.safetensors", metadata={"format": "pt"})
    for name in ("honest", "burning"):
        word_tokenizer().save_pretrained(tmp_path / name)
    for module in (allowed, sources):
        monkeypatch.setattr(module, "SETTINGS", Settings(models=(tmp_path,)))
    monkeypatch.setattr(serving, "MODELS", SharedCache(10**9, lambda model: model.nbytes, serving._forget))
    return tmp_path


def test_a_folder_that_burns_keeps_nobody_else_s_model_waiting(rooms: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[float]()
    unhurried = Limits(memory=600_000_000, seconds=60, processor=10, answer=verdicts.LIMITS.answer)
    plain = verdicts.process.Process

    class Slow(plain):
        def __init__(self, module: str, _limits: Limits) -> None:
            super().__init__(module, unhurried)

        def ask(self, request: Message, check: Callable[[], None]) -> Message:
            if request.values["name"] == "burning":
                started.append(time.monotonic())
            return super().ask(request, check)

    monkeypatch.setattr(verdicts.process, "Process", Slow)
    with ThreadPoolExecutor(1) as pool:
        burning = pool.submit(serving.load_model, "burning")
        until = time.monotonic() + 60
        while not started and time.monotonic() < until:
            time.sleep(0.01)
        serving.load_model("honest")
        serving.load_model("lists")
        assert not burning.done()
        refused = burning.exception(120)
    assert isinstance(refused, av.UnsupportedModel)
    assert "burning" in str(refused) and "takes" in str(refused)
    assert serving.is_loaded("honest") and serving.is_loaded("lists")
