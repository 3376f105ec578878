"""Many small cases in one test: pytest takes milliseconds to start and to report each test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache, wraps
from typing import Any

import pytest


def in_one_test(names: str, cases: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test function for all cases, in the form of ``pytest.mark.parametrize``, as one test.

    It runs all, and names each that fails with what was wrong; the traceback is that of the first one.
    Other arguments are fixtures, the same for all cases. A generator of cases begins when the test does.
    """
    words = names.replace(",", " ").split()

    @cache
    def all_cases() -> list[Any]:
        return [values if len(words) > 1 else (values,) for values in cases]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(**fixtures: object) -> None:
            assert all_cases(), "no case"
            wrong: list[tuple[str, BaseException]] = []
            for values in all_cases():
                case = dict(zip(words, values, strict=True))
                try:
                    test(**case, **fixtures)
                except (Exception, pytest.fail.Exception) as error:
                    wrong.append((", ".join(map(str, values)), error))
                    if str(error).startswith("Timeout"):  # of all cases together
                        break
            if wrong:
                said = "\n".join(f"{case}: {type(error).__name__}: {error}" for case, error in wrong)
                raise AssertionError(f"{len(wrong)} of {len(all_cases())} cases fail\n{said}") from wrong[0][
                    1
                ]

        signature = inspect.signature(test)
        others = [each for name, each in signature.parameters.items() if name not in words]
        vars(run)["__signature__"] = signature.replace(parameters=others)
        del run.__wrapped__
        return run

    return decorate
