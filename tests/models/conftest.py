"""What tests of models share: the real model, loaded once, and one of its own that runs eagerly."""

import threading
from collections.abc import Callable, Iterator

import pytest
import transformers
from transformers import PreTrainedModel

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.conftest import on_one_thread

NAME = "all-MiniLM-L6-v2"


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Matrices this small are slower on several threads, which wait for each other; much slower on a busy machine."""
    with on_one_thread():
        yield


@pytest.fixture(scope="session")
def minilm() -> AttentionModel:
    """The real model, as anybody loads it."""
    model = av.load(NAME)
    assert isinstance(model, AttentionModel)
    return model


@pytest.fixture(scope="session")
def eager_minilm() -> PreTrainedModel:
    """The same weights read a second time, under transformers' eager attention: ours never touched this one."""
    path = av.CATALOGUE[NAME].path
    return transformers.AutoModel.from_pretrained(path, attn_implementation="eager", local_files_only=True).eval()


@pytest.fixture
def together() -> Callable[..., list[object]]:
    """Runs jobs in threads of their own, all started at once: `together(first, second)`. A hang fails the test."""

    def run(*jobs: Callable[[], object], seconds: float = 60) -> list[object]:
        results: list[object] = [None] * len(jobs)
        errors: list[Exception] = []
        start = threading.Barrier(len(jobs))

        def work(number: int) -> None:
            try:
                start.wait(seconds)
                results[number] = jobs[number]()
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds)
        assert not any(thread.is_alive() for thread in threads), f"still running after {seconds} s"
        if errors:
            raise errors[0]
        return results

    return run
