from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fabric._core import Calendar

NEVER = 2**63 - 1


@given(
    st.lists(st.lists(st.integers(0, 5_000), max_size=40), max_size=15),
    st.lists(st.integers(0, 400), min_size=15, max_size=15),
    st.sampled_from([0, 3, 20]),
)
def test_events_leave_in_order_of_time_then_of_pushing(
    batches: list[list[int]], steps: list[int], width_log2: int
) -> None:
    """Horizons of 64 and 512, beyond which many events start, and one slot for all."""
    calendar = Calendar(width_log2, slots_log2=6)
    model: list[tuple[int, int, int]] = []
    now = serial = 0
    for offsets, step in zip(batches, steps, strict=False):
        for offset in offsets:
            calendar.push(now + offset, serial)
            model.append((now + offset, serial, serial))
            serial += 1
        now += step
        due = sorted(event for event in model if event[0] <= now)
        model = [event for event in model if event[0] > now]
        assert calendar.pop_until(now) == [(time, what) for time, _, what in due]
        assert calendar.next_due() == min((event[0] for event in model), default=NEVER)
        assert len(calendar) == len(model)


def test_an_event_pushed_for_the_past_leaves_next() -> None:
    calendar = Calendar(width_log2=3, slots_log2=6)
    calendar.push(1000, 1)
    assert calendar.pop_until(900) == []
    calendar.push(50, 2)
    assert calendar.next_due() == 50
    assert calendar.pop_until(1000) == [(50, 2), (1000, 1)]


def test_events_of_one_slot_leave_in_order_however_many_they_are() -> None:
    calendar = Calendar(width_log2=20, slots_log2=6)
    times = [997 * what % 5 for what in range(1000)]
    for what, time in enumerate(times):
        calendar.push(time, what)
    expected = sorted((time, what) for what, time in enumerate(times))
    assert calendar.pop_until(2) == [event for event in expected if event[0] <= 2]
    calendar.push(3, 1000)  # into what is sorted already
    assert calendar.pop_until(10) == sorted([*(event for event in expected if event[0] > 2), (3, 1000)])
