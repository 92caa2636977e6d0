"""Events in order, sums over the ports that subflows cross, and the ideal scheduler, against models."""

from __future__ import annotations

import math
import random
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric._core import Calendar, Crossings, srpt_ends

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


PORTS = 12
PATHS = st.lists(st.lists(st.integers(0, PORTS - 1), min_size=1, max_size=8), max_size=20)


@given(PATHS, st.randoms(use_true_random=False))
def test_every_port_of_every_path_counts_once(paths: list[list[int]], random: Random) -> None:
    of_port = np.array([random.uniform(-9, 9) for _ in range(PORTS)])
    of_subflow = np.array([random.uniform(-9, 9) for _ in paths])
    crossings = Crossings(paths)
    through = [
        [of_subflow[i] for i, path in enumerate(paths) for p in path if p == port] for port in range(PORTS)
    ]
    assert len(crossings) == len(paths)
    assert [crossings.path(i) for i in range(len(paths))] == paths
    assert crossings.sums(of_port) == pytest.approx([of_port[path].sum() for path in paths])
    assert crossings.least(of_port).tolist() == [of_port[path].min() for path in paths]
    assert crossings.load(of_subflow, PORTS) == pytest.approx([sum(values) for values in through])
    assert crossings.least_at_ports(of_subflow, PORTS).tolist() == [min(v, default=math.inf) for v in through]


@given(PATHS, st.randoms(use_true_random=False))
def test_chosen_subflows_keep_their_paths_and_order(paths: list[list[int]], random: Random) -> None:
    chosen = [random.random() < 0.5 for _ in paths]
    kept = Crossings(paths).only(np.array(chosen, bool))
    expected = [path for path, wanted in zip(paths, chosen, strict=True) if wanted]
    assert [kept.path(i) for i in range(len(kept))] == expected


def test_values_that_do_not_fit_are_refused() -> None:
    crossings = Crossings([[0, 3], [1]])
    for wrong in (
        lambda: crossings.sums(np.zeros(3)),
        lambda: crossings.load(np.zeros(3), 4),
        lambda: crossings.load(np.zeros(2), 3),
        lambda: crossings.only(np.zeros(1, bool)),
        lambda: crossings.path(2),
    ):
        with pytest.raises(ValueError, match="not one value"):
            wrong()
    with pytest.raises(ValueError, match="crosses no port"):
        Crossings([[0], []])


Flow = tuple[int, int, int, int]


def ends(flows: list[Flow], hosts: int = 8, limit: int = NEVER - 1) -> list[int]:
    return [int(end) for end in srpt_ends(flows, hosts, limit)]


@pytest.mark.parametrize(
    ("flows", "expected"),
    [
        ([(0, 100, 0, 2), (30, 20, 1, 2)], [120, 50]),  # a smaller flow interrupts a larger one
        ([(0, 100, 0, 2), (90, 20, 1, 2)], [100, 120]),  # what remains counts, and not the size
        ([(0, 100, 0, 1), (0, 100, 2, 3), (0, 100, 1, 0)], [100, 100, 100]),  # other hosts do not wait
        # The second waits for host 0 to send, so the third may use receiver 2.
        ([(0, 10, 0, 1), (0, 20, 0, 2), (0, 30, 3, 2)], [10, 30, 50]),
    ],
)
def test_flows_end_as_by_hand(flows: list[Flow], expected: list[int]) -> None:
    assert ends(flows) == expected


def test_what_has_not_ended_by_the_limit_never_does() -> None:
    assert ends([(0, 100, 0, 1), (50, 100, 0, 1)], limit=150) == [100, NEVER]


@pytest.mark.parametrize("seed", range(3))
def test_no_host_does_more_than_its_link_allows(seed: int) -> None:
    rng = random.Random(seed)
    starts = sorted(rng.randrange(10_000) for _ in range(300))
    pairs = [rng.sample(range(8), 2) for _ in starts]
    flows = [(t, rng.randint(1, 200), src, dst) for t, (src, dst) in zip(starts, pairs, strict=True)]
    done = ends(flows)
    assert all(end >= start + work for end, (start, work, _, _) in zip(done, flows, strict=True))
    for side in (2, 3):
        for host in range(8):
            mine = sorted((end, flow) for end, flow in zip(done, flows, strict=True) if flow[side] == host)
            for end, _ in mine:
                before = [flow for other, flow in mine if other <= end]
                assert sum(flow[1] for flow in before) <= end - min(flow[0] for flow in before)


@pytest.mark.parametrize("flows", [[(5, 1, 0, 1), (4, 1, 0, 1)], [(0, 0, 0, 1)], [(0, 1, 0, 8)]])
def test_flows_that_cannot_be_are_refused(flows: list[Flow]) -> None:
    with pytest.raises(ValueError, match=r"order|nothing|host"):
        ends(flows)
