"""Plans for the engine `linux`: real hosts, and virtual time."""

from __future__ import annotations

import pytest

from common.errors import UsageError
from engines.registry import LINUX, MININET
from experiments.registry import EXPERIMENTS
from harness.experiment import Figure
from harness.options.options import Defaults, SweepOptions, UserOptions, resolve
from harness.options.rates import GUEST_MBPS, SETTLING_MBIT, SIMULATED_MBPS, WINDOW_MBIT, RateChoice
from harness.plan import machines
from model.spec import SchedulerSpec, TopologySpec, TransportSpec

(FIGURE,) = (
    figure
    for experiment in EXPERIMENTS.values()
    for figure in experiment.figures
    if figure.name == "cs244-one-to-one"
)
TREE = TopologySpec("fat_tree", {"k": 4})


def resolved(**typed: str) -> SweepOptions:
    return resolve(UserOptions.of(**{"engine": LINUX, **typed}), FIGURE.defaults)


def test_its_rate_is_not_measured_and_points_last_as_long_as_in_real_time() -> None:
    assert machines.known_rate(TREE, (LINUX,)) == RateChoice(GUEST_MBPS, machines.GUEST)
    assert machines.known_rate(TREE, (LINUX, "simulator")).rate_mbps == GUEST_MBPS
    assert machines.known_rate(TREE, ("simulator",)).rate_mbps == SIMULATED_MBPS
    ours, real = resolved(), resolved(engine=MININET)
    assert (ours.base.warmup_s, ours.base.seconds) == (real.base.warmup_s, real.base.seconds)


def test_at_ten_times_the_rate_a_tenth_of_the_time_is_enough() -> None:
    slow, fast = resolved(rate="10"), resolved(rate="100")
    assert fast.base.seconds == pytest.approx(slow.base.seconds / 10)


def test_options_of_real_hosts_are_taken_and_those_of_simulated_hosts_refused() -> None:
    base = resolved(traffic="iperf3").on(LINUX)
    assert base.traffic == "iperf3"
    assert resolved().on(LINUX).traffic == "native"
    with pytest.raises(UsageError, match="the stacks of linux's hosts are their own"):
        resolve(UserOptions.of(engine=LINUX, stack=("min_rto_ms=10",)), FIGURE.defaults)


def with_variants() -> list[Figure]:
    return [
        figure
        for experiment in EXPERIMENTS.values()
        for figure in experiment.figures
        if figure.has_variants and figure.emulated is not None
    ]


def test_a_figure_for_real_hosts_runs_in_it_as_it_does_in_real_time() -> None:
    figure = next(found for found in with_variants() if found.guests is None)
    assert variants(figure, LINUX) == {(LINUX,): figure.emulated}
    both = variants(figure, f"simulator,{LINUX}")
    assert list(both.values()) == [figure.defaults, figure.emulated]
    assert LINUX not in (next(iter(both)) or ())


def variants(figure: Figure, engines: str) -> dict[tuple[str, ...] | None, Defaults]:
    return {chosen.engine: own for chosen, own in figure.variants(UserOptions.of(engine=engines))}


def test_a_figure_may_have_settings_of_its_own_for_virtual_time() -> None:
    figure = next(found for found in with_variants() if found.guests is not None)
    found = variants(figure, f"simulator,{MININET},{LINUX}")
    assert found == {("simulator",): figure.defaults, (MININET,): figure.emulated, (LINUX,): figure.guests}
    assert variants(figure, MININET) == {(MININET,): figure.emulated}


@pytest.mark.parametrize("name", ["hedera", "subflow-idle"])
def test_guests_get_what_real_hosts_get_and_not_what_simulated_hosts_do(name: str) -> None:
    (figure,) = (found for found in EXPERIMENTS[name].figures if found.name == name)

    def settings(engine: str) -> list[tuple[TransportSpec, SchedulerSpec]]:
        options = resolve(UserOptions.of(engine=engine, rate="20"), figure.emulated or figure.defaults)
        return [(point.transport, point.scheduler) for point in figure.points(options, lambda _: 20.0)]

    assert settings(LINUX) == settings(MININET)


def test_guests_measure_as_long_as_their_rate_needs() -> None:
    (figure,) = EXPERIMENTS["sigcomm11-congestion-controls"].figures
    defaults = figure.emulated
    assert defaults is not None

    def durations(engine: str, **typed: str) -> tuple[float, float]:
        options = resolve(UserOptions.of(engine=engine, **typed), defaults)
        point = options.window.of(figure.points(options, lambda _: GUEST_MBPS)[0])
        return point.warmup_s, point.seconds

    assert durations(MININET) == (defaults.warmup_s, defaults.seconds)
    assert durations(LINUX) == (SETTLING_MBIT / GUEST_MBPS, WINDOW_MBIT / GUEST_MBPS)
    assert durations(LINUX, seconds="5") == (SETTLING_MBIT / GUEST_MBPS, 5.0)
    assert durations(LINUX, profile="smoke") <= durations(LINUX)
