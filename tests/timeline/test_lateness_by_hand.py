"""The parts of the statistics of late ranks, on figures that can be followed by hand."""

from __future__ import annotations

import math
import random

import pytest

from hpclaunch.timeline import late_ranks as parts
from hpclaunch.timeline.late_ranks import (
    Lateness,
    at_least,
    common_noise,
    deviation,
    hidden_lateness,
    late_ranks,
    lateness_by_rank,
    long_ones,
)


def test_a_rank_is_as_late_as_the_median_of_the_other_ranks_waits_longer() -> None:
    """Of three other ranks the middle one counts, of two the mean."""
    waits = {0: [0.0, 9.0], 1: [4.0, 1.0], 2: [10.0, 5.0], 3: [6.0, 3.0]}
    assert lateness_by_rank(waits) == {
        0: [6.0 - 0.0, 3.0 - 9.0],
        1: [6.0 - 4.0, 5.0 - 1.0],
        2: [4.0 - 10.0, 3.0 - 5.0],
        3: [4.0 - 6.0, 5.0 - 3.0],
    }
    assert lateness_by_rank({0: [0.0], 1: [4.0], 2: [10.0]}) == {0: [7.0], 1: [1.0], 2: [-8.0]}
    assert lateness_by_rank({3: [5.0], 5: [1.0]}) == {3: [-4.0], 5: [4.0]}


def test_of_very_many_values_every_nth_step_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts.LIMIT, "most_values", 8)
    count = {steps: len(lateness_by_rank({0: [0.0] * steps, 1: [1.0] * steps})[0]) for steps in (4, 7, 8, 12)}
    assert count == {4: 4, 7: 7, 8: 4, 12: 4}


def test_the_spread_is_that_of_a_normal_distribution_and_of_ranks_the_middle_one() -> None:
    """The factor 1.4826 makes the median of the distances a standard deviation."""
    assert deviation([1.0, 2.0, 3.0, 4.0, 100.0]) == 1.4826
    assert common_noise({0: [0.0, 2.0, 4.0], 1: [5.0, 5.0, 5.0], 2: [0.0, 3.0, 6.0]}) == 1.4826 * 2


def test_the_chance_of_at_least_so_many_is_binomial() -> None:
    """Of three throws of a coin: 8 ways; of two dice with a six: 11 of 36."""
    chances = [at_least(successes, 3, 0.5) for successes in range(5)]
    assert chances == pytest.approx([1.0, 7 / 8, 4 / 8, 1 / 8, 0.0])
    assert at_least(1, 2, 1 / 6) == pytest.approx(11 / 36)
    assert (at_least(1, 3, 0.0), at_least(3, 3, 1.0)) == (0.0, 1.0)


def test_signs_that_follow_one_another_count_less() -> None:
    """Alternating ones are as good as independent ones; of runs of five each few are independent."""
    assert parts._sign_test([True, False] * 10, 0.5) == pytest.approx(at_least(10, 20, 0.5))
    assert parts._sign_test([True] * 20, 0.5) == pytest.approx(0.5**20)
    runs = parts._sign_test(([True] * 5 + [False] * 5) * 4, 0.25)
    assert runs > 0.01 > at_least(20, 40, 0.25)


def test_the_interval_of_a_median_holds_it_and_is_the_same_each_time() -> None:
    assert parts._interval([5.0] * 30) == (5.0, 5.0)
    values = [float(number % 10) for number in range(100)]
    low, high = parts._interval(values)
    assert low < 4.5 < high
    assert (low, high) == parts._interval(values)
    assert parts._interval([float(step > 1500) for step in range(3000)]) != (0.0, 0.0), "all of a long run"


def test_lateness_grows_where_the_thirds_do_and_the_last_is_half_as_much_again() -> None:
    def growth(first: float, middle: float, last: float, floor: float = 2.0) -> tuple[float, float] | None:
        return parts.growth([first] * 3 + [middle] * 3 + [last] * 3, floor)

    assert growth(4.0, 5.0, 6.5) == (4.0, 6.5)
    assert growth(4.0, 4.0, 6.5) == (4.0, 6.5)
    assert growth(4.0, 6.5, 6.5) == (4.0, 6.5)
    assert growth(4.0, 5.0, 6.0) is None, "not more than 1.5 times"
    assert growth(4.0, 3.9, 9.0) is None
    assert growth(4.0, 9.1, 9.0) is None
    assert growth(1.0, 2.0, 3.0) is None, "by no more than the floor"
    assert growth(-1.0, 0.0, 1.5) == (-1.0, 1.5)
    assert parts.growth([1.0] * 4 + [50.0] * 4, 2.0) is None, "two steps are no third"


def test_late_steps_of_one_rank_after_each_other_are_one_moment() -> None:
    last, size = [0, 0, 1, 1, 0, 0, 0], [9.0, 8.0, 7.0, 1.0, 6.0, 2.0, 5.0]
    assert parts._moments(last, size, 2.0) == [(17.0, 0), (7.0, 1), (6.0, 0), (5.0, 0)]
    assert parts._steps_of(0, last, size, 2.0) == [0, 1, 4, 6]
    assert parts._steps_of(1, last, size, 2.0) == [2]
    assert parts._moments(last, size, 9.0) == []


def test_the_part_of_a_rank_is_improbable_by_the_ways_to_give_the_moments_away() -> None:
    """Five equal moments of one of three ranks: 3 of 3^5 ways; four of one and one of another: 33."""
    assert parts._share_test([(10.0, 1)] * 5, 1, 3) == pytest.approx(3 / 3**5)
    moments = [(10.0, 1)] * 4 + [(10.0, 0)]
    assert parts._share_test(moments, 1, 3) == pytest.approx(3 * (1 + 5 * 2) / 3**5)
    assert parts._share_test([(10.0, 1)], 1, 2) == 1.0, "one moment has to be of some rank"


def test_the_widest_gap_leaves_three_values_on_each_side() -> None:
    short = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5]
    assert long_ones(short) == (0, 1.0)
    values = [1.0 + 0.01 * number for number in range(20)]
    assert long_ones([*values, 50.0, 51.0, 52.0])[0] == 3
    assert long_ones([*values, 50.0, 51.0, 52.0, 53.0])[0] == 4
    assert long_ones([*values, 51.0, 52.0])[0] != 2, "two may be anything"
    assert long_ones([0.0] * 30 + [5.0] * 3) == (0, 1.0), "steps without waiting are no sample"


def test_two_chances_together_are_less_than_either() -> None:
    """Fisher's method for two: p (1 - ln p) of their product."""
    assert parts._fisher(0.1, 0.1) == pytest.approx(0.01 * (1 + 2 * math.log(10)))
    assert (parts._fisher(0.0, 0.5), parts._fisher(1.0, 1.0)) == (0.0, 1.0)


def test_a_period_needs_three_steps() -> None:
    assert parts._period([5, 10], 60) == (None, 1.0)
    assert parts._period([5, 6, 7, 8], 60) == (None, 1.0), "neighbours are a run, not a period"
    assert parts._period([1, 26, 51], 70)[0] == 25
    distance, chance = parts._period([4, 14, 24, 34, 44, 54], 60)
    ways = math.comb(60, 6)  # one of them has all six of the six places
    assert distance == 10
    assert chance == pytest.approx(200 / ways)
    distance, chance = parts._period([4, 14, 24, 33, 44, 54], 60)
    assert distance == 10
    assert chance == pytest.approx(200 * (1 + 6 * 54) / ways), "five of six"


def test_what_a_late_rank_costs() -> None:
    late = Lateness(1, 20, 5, 40.0, 1.0)
    assert (late.share, late.lost_ms) == (0.25, 10.0)


def test_ranks_are_compared_from_two_ranks_and_three_steps() -> None:
    late, waits = [0.0] * 12, [10.0] * 12
    assert late_ranks({0: waits}, 2.0) == late_ranks({}, 2.0) == []
    assert late_ranks({0: waits[:2], 1: late[:2], 2: waits[:2]}, 2.0) == []
    (found,) = late_ranks({0: waits, 1: late, 2: waits}, 2.0)
    assert (found.rank, found.steps, found.late_steps, found.late_ms) == (1, 12, 12, 10.0)
    assert (found.interval_ms, found.noise_ms) == ((10.0, 10.0), 0.0)
    assert late_ranks({0: waits, 1: late, 2: waits}, 10.0) == [], "no more than the floor"


def test_a_second_late_rank_is_found_among_the_ranks_without_the_first() -> None:
    """Rank 3 comes 30 ms after the median, rank 1 is 12 ms earlier than that."""
    waits = {0: [30.0] * 30, 1: [12.0] * 30, 2: [30.0] * 30, 3: [0.0] * 30, 4: [30.0] * 30}
    assert [(one.rank, one.late_ms) for one in late_ranks(waits, 2.0)] == [(3, 30.0), (1, 18.0)]


def test_what_costs_less_than_a_fifth_of_the_floor_per_step_is_left_out() -> None:
    """Rank 1 is 100 ms late in each 20th of 100 steps: 5 ms per step."""
    late = [100.0 if step % 20 == 10 else 0.5 + 0.01 * (step % 7) for step in range(100)]
    waits = {0: late, 1: [0.0] * 100, 2: late}
    (found,) = late_ranks(waits, 24.0)
    assert (found.rank, found.late_steps, found.every, found.lost_ms) == (1, 5, 20, 5.0)
    assert late_ranks(waits, 25.0) == []


def test_without_names_waiting_counts_from_six_steps_and_half_a_step() -> None:
    found = hidden_lateness([50.0] * 6, 5.0, 2, 100.0)
    assert found == Lateness(None, 6, 6, 50.0, 0.0)
    assert hidden_lateness([50.0] * 5, 5.0, 2, 100.0) is None
    assert hidden_lateness([4.9] * 6, 5.0, 2, 100.0) is None, "below the floor"
    noisy = [2.0 + 4.0 * number for number in range(25)]
    random.Random(1).shuffle(noisy)
    assert deviation(noisy) == pytest.approx(1.4826 * 24)
    assert hidden_lateness(noisy, 5.0, 2, 101.0) is None
    found = hidden_lateness(noisy, 5.0, 2, 100.0)
    assert found is not None
    assert (found.late_ms, found.late_steps) == (50.0, 19), "in 19 they wait more than half of the usual"


def test_long_waits_without_a_name_are_told_with_their_distance() -> None:
    waits = [90.0 if step % 10 == 3 else 1.0 + 0.01 * (step % 7) for step in range(60)]
    found = hidden_lateness(waits, 5.0, 4, 100.0)
    assert found is not None
    assert (found.rank, found.late_steps, found.late_ms, found.every) == (None, 6, 90.0, 10)
    assert hidden_lateness([1.0] * 60, 5.0, 4, 100.0) is None
