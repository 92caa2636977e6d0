"""The simulated IMS: messages per call, knees, conservation of messages and calls, timers, draining."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric._core import Ims

MS, S = 10**9, 10**12
USUAL: dict[str, Any] = {
    "pcscf_ps": MS // 10,
    "scscf_ps": 0,
    "lookup_ps": 10 * MS,
    "workers": 4,
    "buffer": 100,
    "hop_ps": MS,
    "hold_ps": 200 * MS,
    "patience_ps": 5 * S,
    "poisson": False,
    "seed": 1,
}


def core(pcscf: int = 1, scscf: int = 1, **changes: Any) -> Ims:
    made = Ims(**{**USUAL, **changes})
    for role, count in (("pcscf", pcscf), ("scscf", scscf)):
        for _ in range(count):
            made.add(role)
    return made


def run(made: Ims, calls: float, registrations: float, seconds: int) -> Ims:
    """Offer the load for some seconds, then let everything end."""
    made.set_rates(calls, registrations)
    made.advance(seconds * S)
    made.set_rates(0, 0)
    made.advance((seconds + 60) * S)
    return made


@pytest.mark.parametrize(
    ("rates", "done", "offered", "at_p", "at_s"),
    [((10, 0), "completed", "offered", 13, 7), ((0, 10), "registered", "registrations", 4, 2)],
)
def test_messages_of_a_call_and_of_a_registration(
    rates: tuple[int, int], done: str, offered: str, at_p: int, at_s: int
) -> None:
    made = run(core(), *rates, 10)
    p, s = made.servers()
    counts: Any = made.counts()
    ended = counts[done]
    assert ended == counts[offered] >= 99
    assert (p["served"], s["served"], s["lookups"]) == (at_p * ended, at_s * ended, ended)
    assert counts["retransmissions"] == 0


def test_setup_time_of_an_idle_network_is_its_parts() -> None:
    """INVITE and 200 cross four hops each; P serves six messages on the way, and 100 and 180 delay some."""
    made = run(core(), 1, 0, 20)
    _, took = made.take_setups()
    least = 8 * MS + 4 * USUAL["pcscf_ps"] + USUAL["lookup_ps"]
    assert least <= took.min() and took.max() <= least + 4 * USUAL["pcscf_ps"]


@pytest.mark.parametrize(("load", "carried"), [(600, True), (900, False)])
def test_p_knee_is_its_service_rate_over_13(load: int, carried: bool) -> None:
    made = core(scscf=10)
    made.set_rates(load, 0)
    made.advance(10 * S)
    p = made.servers()[0]
    assert (p["dropped"] == 0) == carried
    assert (p["busy_ps"] > 0.99 * 10 * S) != carried


@pytest.mark.parametrize(("load", "carried"), [(370, True), (430, False)])
def test_s_knee_is_its_workers_over_the_look_up(load: int, carried: bool) -> None:
    made = core(pcscf=4)
    made.set_rates(load, 0)
    made.advance(10 * S)
    s = made.servers()[-1]
    assert (s["longest"] < 50) == carried


@pytest.mark.parametrize("load", [100, 700, 2000])
@pytest.mark.parametrize("seed", [1, 2])
def test_calls_and_messages_are_conserved(load: int, seed: int) -> None:
    made = run(core(poisson=True, seed=seed), load, 50, 10)
    counts = made.counts()
    assert counts["offered"] == counts["completed"] + counts["failed"]
    assert counts["registrations"] == counts["registered"] + counts["registrations_failed"]
    for server in made.servers():
        assert server["arrived"] == server["served"] + server["dropped"]
        assert server["waiting"] == server["dialogs"] == 0 and server["idle"]
        assert server["longest"] <= USUAL["buffer"]


def test_same_seed_same_run_and_another_seed_another_one() -> None:
    one, same, other = (run(core(poisson=True, seed=seed), 500, 50, 5) for seed in (1, 1, 2))
    assert one.counts() == same.counts() and one.servers() == same.servers()
    assert np.array_equal(one.take_setups()[1], same.take_setups()[1])
    assert one.counts() != other.counts()


def test_a_lost_request_is_repeated_after_t1_doubling() -> None:
    """A P-CSCF whose only message takes 100 s answers nothing: the caller repeats its INVITE until its
    patience ends, after 0.5, 1.5 and 3.5 s (RFC 3261, 17.1.1.2)."""
    made = core(pcscf_ps=100 * S)
    made.set_rates(1, 0)
    made.advance(1 * S)
    made.set_rates(0, 0)
    counts = []
    for tenth in range(10, 81):
        made.advance(tenth * S // 10)
        counts.append(made.counts()["retransmissions"])
    rises = [counts.index(n) for n in (1, 2, 3)]
    assert np.diff(rises).tolist() == [10, 20]
    assert max(counts) == 3
    assert made.counts()["failed"] == made.counts()["offered"] == 1


def test_a_drained_server_keeps_its_dialogs_and_gets_no_new_ones() -> None:
    made = core(pcscf=2, scscf=2)
    made.set_rates(100, 0)
    made.advance(5 * S)
    made.drain(3)
    before = made.servers()[3]
    assert before["dialogs"] > 0 and not before["active"]
    made.advance(10 * S)
    after = made.servers()[3]
    assert after["dialogs"] == 0 and after["served"] > before["served"]
    assert after["lookups"] - before["lookups"] <= before["dialogs"]
    assert made.counts()["failed"] == 0
    made.activate(3)
    made.advance(12 * S)
    assert made.servers()[3]["lookups"] > after["lookups"]


def test_numbers_that_no_network_has_are_refused() -> None:
    for wrong in ({"pcscf_ps": 0}, {"workers": 0}, {"buffer": 0}, {"lookup_ps": -1}, {"patience_ps": 0}):
        with pytest.raises(ValueError, match="an IMS needs"):
            core(**wrong)
    with pytest.raises(ValueError, match="a server of each role"):
        Ims(**USUAL).set_rates(1, 1)
    with pytest.raises(ValueError, match="last active"):
        core().drain(0)
    with pytest.raises(ValueError, match="rates"):
        core().set_rates(-1, 0)


def full(calls: float, registrations: float) -> tuple[float, int]:
    """Return the mean and the largest number of messages that wait for an overloaded P-CSCF."""
    made = core(scscf=10)
    made.set_rates(calls, registrations)
    made.advance(5 * S)
    before = made.servers()[0]
    made.advance(15 * S)
    now = made.servers()[0]
    return (now["queued_ps"] - before["queued_ps"]) / (10 * S), now["longest"]


def test_a_full_buffer_holds_a_quarter_less_at_times() -> None:
    """Linux frees the room of read messages by quarters, so the mean fill is an eighth below the maximum."""
    mean, most = full(0, 6000)
    assert most == USUAL["buffer"]
    assert mean == pytest.approx(0.875 * USUAL["buffer"], abs=3)


def test_long_messages_take_more_room() -> None:
    """An INVITE to a callee's P-CSCF, and the 200 to it, take 2304 bytes instead of 1280."""
    mean, most = full(900, 0)
    assert most < USUAL["buffer"]
    assert 0.875 * 1280 / 2304 < mean / USUAL["buffer"] < 0.875


def test_a_repeated_invite_is_not_answered_again() -> None:
    """The callee's 200 has a timer of its own (RFC 6026).

    P-CSCFs that take 0.6 s per message answer later than T1, so INVITEs are repeated. The callee gets three;
    with a 200 to each the S-CSCF would get two messages more.
    """
    made = run(core(pcscf=2, pcscf_ps=6 * S // 10, patience_ps=30 * S), 1, 0, 1)
    assert made.counts()["completed"] == made.counts()["offered"] == 1
    assert made.servers()[-1]["arrived"] == 19
