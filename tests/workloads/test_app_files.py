"""An app's TOML file: what it becomes, what it refuses, and where its programs run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.errors import UsageError
from common.privileges import ROOT
from harness.options.parsers import named_workloads
from topos import build as built
from workloads import app, matrices
from workloads.flow import Traffic

HOSTS = [f"n{number}" for number in range(6)]
WEB = """
background = "stride:2"
files = ["server.py"]

[programs.server]
hosts = "first"
run = "{python} server.py {port} '{host} and more'"
port = 80
ready = "port"

[programs.client]
hosts = "others"
run = ["get", "{ip:server}:{port:server}", "{number}/{count}", "{{x}", "{peer}", "{ips}", "{rate_mbps}"]
each = 2
poisson_per_s = 10
measure = "json"
ends_run = true
"""


def text_of(folder: Path, text: str) -> str:
    (folder / "web.toml").write_text(text)
    (folder / "server.py").write_text("print('x')\n")
    return app.read("app web.toml", folder / "web.toml")


def setting(programs: tuple[app.Program, ...]) -> app.Setting:
    return app.Setting(programs, {host: f"10.0.0.{host[1:]}" for host in HOSTS}, 1, 12.5, "/py")


def test_the_file_becomes_data(tmp_path: Path) -> None:
    text = text_of(tmp_path, WEB)
    found = app.parsed(text)
    assert [group.name for group in found.programs] == ["server", "client"]
    assert found.files == {"server.py": "print('x')\n"}
    assert found.programs[0].run == ("{python}", "server.py", "{port}", "{host} and more")
    assert app.read("app", tmp_path / "web.toml") == text


def test_programs_are_placed_and_filled_in(tmp_path: Path) -> None:
    found = app.parsed(text_of(tmp_path, WEB))
    programs = app.placed(found, HOSTS, 7)
    assert programs == app.placed(found, HOSTS, 7)
    server, *clients = programs
    assert (server.host, server.port, len(clients)) == ("n0", 80, 10)
    assert {client.host for client in clients} == set(HOSTS[1:])
    starts_s = [client.start_s for client in clients]
    assert starts_s == sorted(starts_s) and starts_s[0] == 0 < starts_s[1]
    assert starts_s != [each.start_s for each in app.placed(found, HOSTS, 8)[1:]]
    fill = setting(programs)
    assert [fill.filled(server, part) for part in found.programs[0].run][:3] == ["/py", "server.py", "80"]
    last = clients[-1]
    filled = [fill.filled(last, part) for part in found.programs[1].run]
    assert filled[:5] == ["get", "10.0.0.0:80", "9/10", "{x}", "10.0.0.1"]
    assert filled[5].split(",") == [f"10.0.0.{number}" for number in (1, 2, 3, 4, 5)] * 2
    assert filled[6] == "12.5"


def test_programs_of_one_group_on_a_host_have_ports_of_their_own() -> None:
    group = app.Group(name="a", run=("x",), each=3, port=100, hosts="n1,n3")
    programs = app.placed(app.App(programs=(group,)), HOSTS, 1)
    assert [(each.host, each.port) for each in programs] == [
        ("n1", 100), ("n3", 100), ("n1", 101), ("n3", 101), ("n1", 102), ("n3", 102),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [("all", HOSTS), ("last", ["n5"]), ("first:2", ["n0", "n1"]), ("n[23]", ["n2", "n3"]), ("n*", HOSTS)],
)
def test_hosts_are_chosen_by_place_or_name(hosts: str, expected: list[str]) -> None:
    group = app.Group(name="a", run=("x",), hosts=hosts)
    assert [each.host for each in app.placed(app.App(programs=(group,)), HOSTS, 1)] == expected


def test_some_of_the_others_are_on_no_host_of_another_group() -> None:
    server = app.Group(name="a", run=("x",), hosts="first:2")
    clients = app.Group(name="b", run=("x",), hosts="others:3")
    for seed in range(20):
        programs = app.placed(app.App(programs=(server, clients)), HOSTS, seed)
        on = [each.host for each in programs if each.group is clients]
        assert len(set(on)) == 3 and {"n0", "n1"}.isdisjoint(on)
    with pytest.raises(UsageError, match="hosts others:3: none is left"):
        app.placed(app.App(programs=(server, app.Group(name="c", run=("x",)), clients)), HOSTS, 1)


def test_random_hosts_depend_on_the_seed_alone() -> None:
    group = app.Group(name="a", run=("x",), hosts="random:3")
    draws = {
        tuple(each.host for each in app.placed(app.App(programs=(group,)), HOSTS, seed)) for seed in range(30)
    }
    assert len(draws) > 5 and all(len(set(draw)) == 3 for draw in draws)


def test_flows_beside_programs_are_those_of_the_workload_alone(tmp_path: Path) -> None:
    topology, traffic = built("star", {"n": 6}), Traffic(2.0, 100.0)
    params = {"name": "web.toml", "programs": text_of(tmp_path, WEB)}
    beside = matrices.build("app", topology, params, 5, traffic)
    assert beside == matrices.build("stride", topology, {"i": 2}, 5) != ()
    params["programs"] = text_of(tmp_path, WEB.replace('"stride:2"', '""'))
    assert matrices.build("app", topology, params, 5, traffic) == ()


def test_the_option_names_the_file(tmp_path: Path) -> None:
    text_of(tmp_path, WEB)
    (spec,) = named_workloads("--workload", [f"app:{tmp_path / 'web.toml'}"])
    assert matrices.label(spec.matrix, spec.params) == "app:web.toml"
    with pytest.raises(UsageError, match=r"--workload: app .*no.toml: cannot be read: No such file"):
        named_workloads("--workload", [f"app:{tmp_path / 'no.toml'}"])


RUN = '[programs.a]\nrun = "x"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it has no programs"),
        ("x", "app web.toml: Expected '='"),
        ("[programs.a]\n", r"programs\.a: .*missing required field `run`"),
        ('[programs.a]\nrun = ""', r"programs\.a\.run: it is empty"),
        ("[programs.a]\nrun = \"x 'y\"", r"programs\.a\.run: No closing quotation"),
        (f"{RUN}port = 70000", r"programs\.a\.port: .*65535"),
        (f'{RUN}host = "all"', r"programs\.a: .*unknown field `host`; did you mean hosts"),
        (f'{RUN}ready = "port"', 'needs a port'),
        (f'{RUN}ready = "soon"', r'programs\.a\.ready: write "port"'),
        (f'{RUN}ready = "line:x"\nends_run = true', "with ready, programs start before traffic"),
        (f"{RUN}spread_s = 1\npoisson_per_s = 1", "not both"),
        (f'{RUN}measure = "("', r"programs\.a\.measure: "),
        (f'{RUN}measure = "took .*"', r"programs\.a\.measure: write .json., or name what it finds"),
        ('[programs.a]\nrun = "x {hots}"', r"\{hots\} is unknown; there are \{host\}"),
        ('[programs.a]\nrun = "x {ip:b}"', "there is no group b"),
        (f'{RUN}env = {{"a-b" = "1"}}', "a-b is not a name"),
        (f'files = ["../x"]\n{RUN}', "files: ../x: name a file beside this one"),
        (f'files = ["nope.py"]\n{RUN}', "files: nope.py: cannot be read: No such file"),
        (f'backgroud = "x"\n{RUN}', "unknown field `backgroud`; did you mean background"),
        ('[programs."a b"]\nrun = "x"', "a name has letters"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        text_of(tmp_path, text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("hosts", "words"),
    [("n9", "no host is called n9"), ("first:7", "give a number from 1 to 6"), ("random:x", "give a number")],
)
def test_a_group_without_hosts_is_refused(hosts: str, words: str) -> None:
    group = app.Group(name="a", run=("x",), hosts=hosts)
    with pytest.raises(UsageError, match=words):
        app.placed(app.App(programs=(group,)), HOSTS, 1)


def test_a_damaged_text_and_other_kinds_beside_programs_are_refused(tmp_path: Path) -> None:
    for text, words in (("{", "its text is damaged"), ("", "name a file of programs")):
        with pytest.raises(UsageError, match=words):
            app.parsed(text)
    params = {"name": "w", "programs": text_of(tmp_path, WEB.replace("stride:2", "sip"))}
    with pytest.raises(UsageError, match="give a workload of flows"):
        matrices.build("app", built("star", {"n": 6}), params, 5, Traffic(2.0, 100.0))


@pytest.mark.parametrize("name", ["web.toml", "redis.toml"])
def test_the_examples_of_the_guide_are_apps(name: str) -> None:
    path = ROOT / "docs/guide/programs" / name
    found = app.parsed(app.read(name, path))
    server, *clients = app.placed(found, HOSTS, 1)
    assert server.host == "n0" and all(client.group.measure and client.group.ends_run for client in clients)
    assert 10 <= len(path.read_text().splitlines()) <= 30


def test_the_guide_shows_its_example() -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/guide/programs.md").read_text(), re.DOTALL)
    assert (ROOT / "docs/guide/programs/web.toml").read_text().partition("\n")[2] == shown


def test_the_guide_has_every_key() -> None:
    page = (ROOT / "docs/guide/programs.md").read_text()
    keys = {*app.Group.__struct_fields__, *app.App.__struct_fields__} - {"name", "programs"}
    assert [key for key in sorted(keys) if f"`{key}`" not in page and f"`{key} =" not in page] == []
    assert [place for place in app.PLACES if f"`{{{place}}}`" not in page] == []
