"""What tests of where models come from share."""

from typing import Any

import pytest
from transformers import PreTrainedModel


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weights are read while this test runs."""

    def refuse(*_: Any, **__: Any) -> None:
        pytest.fail("weights were read")

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", refuse)
