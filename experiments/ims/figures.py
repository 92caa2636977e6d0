"""ims: a SIP core whose bottleneck moves as the load grows, and a controller that scales what is overloaded.

After the slides of Duan (University of Hong Kong, 2015), who ran Project Clearwater. Values that the slides
do not state are our assumptions, listed in docs/experiments/ims.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from engines.registry import SIMULATOR
from experiments.ims.ladder import LADDER, MORE_P, MORE_S, PUBLISHED_LOADS, REAL_SCALE
from experiments.ims.statements import HOSTS, PUBLISHED, TOPOLOGY
from harness.experiment import Experiment, Figure
from harness.options.options import ENGINE, Defaults, SweepOptions
from harness.plan.sweeps import Variant, points_on
from model.congestion import BASELINE
from model.spec import TopologySpec
from workloads.sip import MATRIX, POLICIES

NAME = "ims"
SEEDS = 6
STEP_S = 30.0
LADDER_BRIEF_S = 6.0
BRIEF_S = 15.0
CONTROLLED_S = 150.0
REAL_CONTROLLED_S = 60.0
REAL_LATE_S = 75.0
OPTIONS = (
    "topology", "workload", "engine", "seconds", "warmup", "seed", "seeds", "profile", "rate", "delay",
    "queue", "event",
)  # fmt: skip
DEFAULTS = Defaults(
    ks=(),
    workloads=tuple(step.workload(scale) for scale in (100, REAL_SCALE) for step in LADDER),
    subflows=(1,),
    rate_mbps=100.0,
    queue_pkts=1000,
    delay_us=50.0,
    seconds=STEP_S,
    warmup_s=0.0,
    brief_s=BRIEF_S,
    seeds=SEEDS,
    brief_seeds=1,
    engines=(SIMULATOR,),
)
REAL = dataclasses.replace(
    DEFAULTS,
    workloads=tuple(step.workload(REAL_SCALE) for step in LADDER),
    seeds=None,
    brief_s=LADDER_BRIEF_S,
    engines=(ENGINE,),
)
"""Real programs, one repetition unless --seeds or the profile says otherwise."""
KNEE_LOADS = (*range(40, 181, 20), *range(220, 421, 40))
RISE_AND_FALL = "load=130+180+320+180+130"
PULSE = "load=125+180+125+60+125"
CONTROLLED = (
    *(f"{MATRIX}:320:{RISE_AND_FALL}:policy={policy}" for policy in POLICIES),
    f"{MATRIX}:320:{RISE_AND_FALL}:policy=queue:react_s=10",
    f"{MATRIX}:320:pcscf=3:scscf=3:{RISE_AND_FALL}",
)
AS_REAL = f"scale={REAL_SCALE}:arrivals=constant"
LATE = tuple(
    f"{MATRIX}:180:scscf=2:{PULSE}:{AS_REAL}{more}"
    for more in ("", ":policy=queue", ":policy=queue:react_s=20")
)
"""Both engines run at half the published rates. At the full rates queues are half as long relative to SIP's
timers, and the overload ends sooner."""
REAL_CONTROLLED = tuple(
    f"{MATRIX}:320:load=130+320+60+60:{AS_REAL}{more}"
    for more in ("", *(f":policy={policy}" for policy in POLICIES if policy != "static"))
)
REAL_LATE = LATE[:2]
LARGE = (
    f"{MATRIX}:1000:registrations=300:pcscf=7:scscf=7",
    f"{MATRIX}:3000:registrations=1000:pcscf=21:scscf=20",
    f"{MATRIX}:10000:registrations=3000:pcscf=70:scscf=68",
)


def star(options: SweepOptions) -> list[TopologySpec]:
    """Return one switch with users, HSS and up to six instances of each function, or the networks requested
    instead."""
    return list(options.topologies) or [TopologySpec(TOPOLOGY, {"n": HOSTS})]


def large_star(options: SweepOptions) -> list[TopologySpec]:
    return list(options.topologies) or [TopologySpec(TOPOLOGY, {"n": 142})]


PLAIN = (Variant(cc=BASELINE, subflows=(1,)),)


def _knee_workloads() -> Sequence[str]:
    instances = ("", *(f":pcscf={step.pcscf}:scscf={step.scscf}" for step in (MORE_S, MORE_P)))
    return [f"{MATRIX}:{calls}{more}".replace(":pcscf=1", "") for more in instances for calls in KNEE_LOADS]


def _figure(
    name: str,
    title: str,
    about: str,
    charts: tuple[str, ...],
    emulated: Defaults | None = None,
    marks: tuple[float, ...] = (),
    **changes: object,
) -> Figure:
    topologies = large_star if name.endswith("large") else star
    return Figure(
        name=name, title=title, about=about, defaults=dataclasses.replace(DEFAULTS, **changes),  # type: ignore[arg-type]
        topologies=topologies, points=points_on(topologies, PLAIN), charts=charts, sized=False,
        relative=False, options=OPTIONS, separate_variants=True, emulated=emulated, marks=marks,
    )  # fmt: skip


FIGURES = (
    Figure(
        name=f"{NAME}-ladder",
        title="The published loads, and what overloads",
        about=(
            "Calls and registrations go through one P-CSCF and one S-CSCF. At 130 calls per second the "
            "S-CSCF is full, because its workers wait for user data. With two of them the P-CSCF is next, at "
            "180, and with two P-CSCFs again at 320. Each step begins with an idle network."
        ),
        defaults=dataclasses.replace(DEFAULTS, brief_s=LADDER_BRIEF_S),
        topologies=star,
        points=points_on(star, PLAIN),
        charts=("ladder",),
        published=PUBLISHED,
        emulated=REAL,
        sized=False,
        relative=False,
        options=OPTIONS,
        separate_variants=True,
    ),
    _figure(
        f"{NAME}-knee",
        "Calls completed and setup time by load",
        "The load of each point is constant. Calls are completed as offered up to the knee that service "
        "times give. Beyond it retransmissions take what is left, and far fewer calls complete.",
        ("knee",),
        marks=PUBLISHED_LOADS,
        workloads=tuple(_knee_workloads()),
        seeds=1,
    ),
    _figure(
        f"{NAME}-control",
        "A controller that scales what is overloaded",
        "The load follows the published steps up and down again. Each policy sees the same signals once a "
        "second. CPU use does not show that an S-CSCF is overloaded, since its workers wait.",
        ("policies", "controlled"),
        emulated=dataclasses.replace(
            REAL, workloads=REAL_CONTROLLED, seconds=REAL_CONTROLLED_S, brief_s=REAL_CONTROLLED_S
        ),
        workloads=CONTROLLED,
        seconds=CONTROLLED_S,
        brief_s=CONTROLLED_S / 3,
    ),
    _figure(
        f"{NAME}-late",
        "An overload that outlasts its cause",
        "125 calls per second are carried before a pulse of 180 and not after it: retransmissions keep the "
        "P-CSCF full. It ends when the load falls to 60, or when an instance is added. Rates are half of "
        "these.",
        ("policies", "controlled"),
        emulated=dataclasses.replace(REAL, workloads=REAL_LATE, seconds=REAL_LATE_S, brief_s=REAL_LATE_S),
        workloads=LATE,
        seconds=CONTROLLED_S,
        brief_s=CONTROLLED_S / 2,
    ),
    _figure(
        f"{NAME}-large",
        "Up to 10 000 calls a second",
        "As many instances as the knees ask for, with a tenth to spare. No instance overloads.",
        ("ladder",),
        workloads=LARGE,
        seeds=1,
        seconds=20.0,
        brief_s=5.0,
    ),
)
LADDER_FIGURE, *OTHERS = FIGURES[:4]
EXPERIMENT = Experiment(
    name=NAME,
    title="An IMS under overload, and scaling of its functions (HKU, 2015)",
    folder=NAME,
    # These figures take minutes more with real programs, so only their own experiments run them.
    figures=(LADDER_FIGURE, *(dataclasses.replace(figure, emulated=None) for figure in OTHERS)),
    shared_options=("engine", "seed", "seeds", "profile", "rate", "delay", "queue"),
)
SINGLE = tuple(Experiment(figure.name, figure.title, NAME, (figure,), OPTIONS) for figure in FIGURES)
