"""What tests of models share: jobs that run at the same time."""

import threading
from collections.abc import Callable

import pytest


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
