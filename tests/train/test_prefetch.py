"""Batches that a thread makes ahead."""

from __future__ import annotations

import threading

import pytest

from hpclaunch.train.data.dataset import prefetched


def test_all_come_in_their_order_from_another_thread() -> None:
    threads = set()

    def square(number: int) -> int:
        threads.add(threading.get_ident())
        return number * number

    for count in (0, 1, 3, 50):
        assert list(prefetched(square, range(count))) == [number * number for number in range(count)]
    assert threads
    assert threading.get_ident() not in threads


def test_the_next_is_made_while_the_current_one_is_used() -> None:
    second = threading.Event()

    def make(number: int) -> int:
        if number == 1:
            second.set()
        return number

    batches = prefetched(make, range(9))
    assert next(batches) == 0
    second.wait()  # nobody has asked for it
    batches.close()


def test_an_error_comes_where_its_batch_would_have() -> None:
    def fail_at_7(number: int) -> int:
        if number == 7:
            raise OSError("disk gone")
        return number

    batches = prefetched(fail_at_7, range(20))
    assert [next(batches) for _ in range(7)] == list(range(7))
    with pytest.raises(OSError, match="disk gone"):
        next(batches)


def test_no_thread_is_left_where_a_run_ends_early() -> None:
    before = threading.active_count()
    batches = prefetched(lambda number: number, range(1000))
    next(batches)
    assert threading.active_count() == before + 1
    batches.close()
    assert threading.active_count() == before
