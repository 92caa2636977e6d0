"""What a stored point may name: all that the catalogue plans, and nothing that this checkout lacks."""

from __future__ import annotations

import json

import pytest

from common.errors import UsageError
from experiments.registry import EXPERIMENTS
from harness.options.fields import SPEC_FIELDS, changed
from harness.options.options import UserOptions
from harness.plan import session
from harness.results import run_json
from model.spec import LinkEvent, NoiseSpec, OpenFlowSpec, RunSpec, SchedulerSpec, StackSpec
from tests.support.specs.other_values import other
from tests.support.stored_points import spec_of


def test_every_planned_point_is_known_and_comes_back_from_json() -> None:
    checked = 0
    for experiment in EXPERIMENTS.values():
        asked = UserOptions.of(profile="paper", seeds=1)
        made = session.make_plan(experiment, asked)
        for spec in (job.spec for job in made.jobs if job.spec.link.rate_mbps > 0):
            run_json.check_known(spec)
            assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
            checked += 1
    assert checked > len(EXPERIMENTS)


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ("seed", "1", "seed is not an integer"),
        ("seed", True, "seed is not an integer"),
        ("seconds", "40", "seconds is not a finite number"),
        ("colour", 1, "colour: this version has no such field"),
        ("link", {}, r"link\.rate_mbps is missing"),
        ("link", 5, "link is not an object"),
        ("topology", {"params": {"k": 4.0}}, r"topology\.params\.k is none of int, str"),
        ("workload", {"params": {"i": None}}, r"workload\.params\.i is none of int, str"),
        ("events", {"t_s": 1}, "events is not a list"),
        ("events", [[1, "a", "b"]], r"events\[0\] is not an object"),
        ("stack", {"sack": 1}, r"stack\.sack is neither true nor false"),
    ],
)
def test_a_field_of_another_type(place: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        RunSpec.from_json({**spec_of().to_json(), place: value})


def test_values_are_checked_as_they_are_and_not_as_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_text(_value: object) -> str:
        raise AssertionError("a typed value became a text")

    spec = changed(spec_of(), {field.path: other(field.path) for field in SPEC_FIELDS})
    as_stored = RunSpec.from_json(json.loads(json.dumps(spec.to_json())))
    for field in SPEC_FIELDS:
        monkeypatch.setitem(field.__dict__, "text", no_text)
    run_json.check_known(as_stored)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("dataplane", "tin", "--dataplane tin: unknown; choose from: fabric"),
        ("openflow", OpenFlowSpec(controller="nox"), "--controller nox: unknown"),
        ("openflow", OpenFlowSpec(mode="lazy"), "--mode lazy: unknown"),
        ("routing", "luck", "--routing luck: unknown"),
        ("traffic", "owls", "--traffic owls: unknown"),
        ("clock", "sand", "--clock sand: unknown"),
        ("link.loss", 0.6, "loss of 0.6: must be at most"),
        ("link.discipline", "magic", "--discipline magic: unknown"),
        ("link.host_queue", "tub", "--host-queue tub: unknown"),
        ("link.trace", "@secrets.txt", "--link-trace: a stored point names a file"),
        ("link.trace", "lte:soon", "--link-trace lte:soon: the seed is a whole number"),
        ("events", (LinkEvent(1.0, "p0a0", ""),), "--event 1:p0a0-:0: write SECONDS:NODE-NODE"),
        ("events", (LinkEvent(1.0, "p0-a0", "c0"),), "--event 1:p0-a0-c0:0: write SECONDS:NODE-NODE"),
        ("transport.sysctls", {"kernel.panic": "1"}, "--sysctl kernel.panic=1: write NAME=VALUE"),
        ("transport.sysctls", {"net.ipv4.tcp_sack": " "}, "--sysctl net.ipv4.tcp_sack= : write NAME=VALUE"),
        ("scheduler", SchedulerSpec("fate", 100.0), "--scheduler fate:100: unknown"),
        ("scheduler", SchedulerSpec("first_fit", 0.5), "--scheduler first_fit:0.5: write NAME:MS"),
        ("scheduler", SchedulerSpec("responsive", 0.0), "--scheduler responsive:0: write NAME:MS"),
        ("scheduler", SchedulerSpec("responsive", 2.0, down_monitors=0.5), "add down_for=S"),
        ("noise", NoiseSpec("cellar", 100.0, 2.0, 6.0), "unknown place 'cellar'"),
        ("noise", NoiseSpec("all", 100.0, 6.0, 2.0), "LEAST must not exceed MOST"),
        ("stack", StackSpec(recovery="prayer"), "--stack recovery=prayer: unknown; choose from: rfc"),
    ],
)
def test_a_value_that_this_checkout_does_not_know(path: str, value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        run_json.check_known(changed(spec_of(), {path: value}))
