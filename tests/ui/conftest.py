import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner

from attention_viz.sources import CATALOGUE
from tests.shipped import MINILM, plain_weights
from tests.ui.served import save_models


@pytest.fixture(scope="session", autouse=True)
def packages_looked_through_once() -> Iterator[None]:
    """Streamlit looks for components in all that is installed, for each screen of a test anew: a tenth of a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            manifest_scanner, "scan_component_manifests", functools.cache(manifest_scanner.scan_component_manifests)
        )
        yield


@pytest.fixture(scope="session")
def eager_weights() -> Callable[[str], Any]:
    """The weights of every layer as plain transformers computes them, with nothing of ours involved."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(CATALOGUE[MINILM].path)
    return lambda text: [layer[None] for layer in plain_weights(MINILM, tuple(tokenizer(text).input_ids))]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An allowed folder with three models, and a link that leads out of it."""
    place = tmp_path_factory.mktemp("models")
    save_models(place)
    return place / "allowed"
