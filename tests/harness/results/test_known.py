"""What a stored point may name: all that the catalogue plans, and nothing that this checkout lacks."""

from __future__ import annotations

import json

import pytest

from common.errors import UsageError
from experiments.registry import EXPERIMENTS
from harness.plan import session
from harness.results import run_json
from model.spec import RunSpec
from tests.support.options import options_typed
from tests.support.stored_points import spec_of


def test_every_planned_point_is_known_and_comes_back_from_json() -> None:
    checked = 0
    for experiment in EXPERIMENTS.values():
        asked = options_typed(profile="paper", seeds=1)
        made = session.make_plan(experiment, asked)
        for spec in (job.spec for job in made.jobs if job.spec.link.rate_mbps > 0):
            run_json.check_known(spec)
            assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
            checked += 1
    assert checked > len(EXPERIMENTS)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("seed", "1", r"Expected `int`, got `str` - at `\$\.seed`"),
        ("seed", True, r"Expected `int`, got `bool` - at `\$\.seed`"),
        ("seconds", "40", r"at `\$\.seconds`"),
        ("colour", 1, "no field colour"),
        ("link", {}, r"`rate_mbps` - at `\$\.link`"),
        ("link", 5, r"at `\$\.link`"),
        ("link", {"rate_mbps": 1, "hue": 2}, r"no field link\.hue"),
        (
            "topology",
            {"params": {"k": 4.0}},
            r"got `float` - at `\$\.topology\.params",
        ),
        ("workload", {"params": {"i": None}}, r"got `null` - at `\$\.workload\.params"),
        ("events", {"t_s": 1}, r"at `\$\.events`"),
        ("events", [[1, "a", "b"]], r"at `\$\.events\[0\]`"),
        ("stack", {"sack": 1}, r"Expected `bool`, got `int` - at `\$\.stack\.sack`"),
    ],
)
def test_a_field_of_another_type(place: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        RunSpec.from_json({**spec_of().to_json(), place: value})


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("engine", "steam", "engine steam: unknown"),
        ("dataplane", "tin", "data plane tin: unknown; choose from: fabric"),
        ("openflow", {"controller": "nox"}, "--controller nox: unknown"),
        ("openflow", {"mode": "lazy"}, "--mode lazy: unknown"),
        ("routing", "luck", "--routing luck: unknown"),
        ("traffic", "owls", "--traffic owls: unknown"),
        ("clock", "sand", "--clock sand: unknown"),
        ("link", {"rate_mbps": 1, "loss": 0.6}, "loss of 0.6: must be at most"),
        ("link", {"rate_mbps": 1, "discipline": "magic"}, "--discipline magic: unknown"),
        ("link", {"rate_mbps": 1, "host_queue": "tub"}, "--host-queue tub: unknown"),
        ("link", {"rate_mbps": 1, "trace": "@secrets.txt"}, "trace"),
        ("link", {"rate_mbps": 1, "trace": "lte:soon"}, "lte:soon: the seed is a whole number"),
        ("events", [{"t_s": 1, "a": "p0a0", "b": ""}], "--event 1:p0a0-:0: write SECONDS:NODE-NODE"),
        ("events", [{"t_s": 1, "a": "p0-a0", "b": "c0"}], "--event 1:p0-a0-c0:0: write SECONDS:NODE-NODE"),
        ("transport", {"sysctls": {"kernel.panic": "1"}}, "--sysctl kernel.panic=1: write NAME=VALUE"),
        ("transport", {"sysctls": {"net.ipv4.tcp_sack": " "}}, "--sysctl net.ipv4.tcp_sack= : write NAME"),
        ("transport", {"cc": "hope"}, "--cc hope: unknown"),
        ("scheduler", {"name": "fate", "interval_ms": 100}, "--scheduler fate: unknown"),
        ("scheduler", {"name": "first_fit", "interval_ms": 0.5}, r"scheduler\.interval_ms of 0.5: must be"),
        ("scheduler", {"name": "responsive"}, "monitors need an interval"),
        ("scheduler", {"name": "responsive", "interval_ms": 2, "down_monitors": 0.5}, "add down_for=S"),
        ("noise", {"where": "cellar"}, "--stalls cellar: unknown"),
        ("noise", {"where": "all", "every_ms": 100, "least_ms": 6, "most_ms": 2}, "must not exceed MOST"),
        ("stack", {"recovery": "prayer"}, "--stack recovery=prayer: unknown; choose from: rfc"),
    ],
)
def test_a_value_that_this_checkout_does_not_know(place: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run_json.check_known(RunSpec.from_json({**spec_of().to_json(), place: value}))
