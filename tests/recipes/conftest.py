"""What tests of recipes share: one thread, on which the models were trained."""

from collections.abc import Iterator

import pytest

from tests.conftest import on_one_thread


@pytest.fixture(scope="package", autouse=True)
def one_thread() -> Iterator[None]:
    """Sums in another order would give other weights."""
    with on_one_thread():
        yield
