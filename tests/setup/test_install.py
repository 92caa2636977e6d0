"""setup/install.sh: what it installs is pinned by hash, and it never loses a policy-rc.d. And the files for
containers and cloud machines, as far as they can be checked without starting one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from setup import lock

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "setup" / "install.sh"
THEIRS = "#!/bin/sh\nexit 104\n"
DEAD_PID = 2**22 + 1  # above the kernel's limit: never a process


def test_a_machine_without_a_policy_is_no_error(policy: Path) -> None:
    done = in_script("set -euo pipefail; policy_back; echo went on", policy)
    assert done.stdout.strip() == "went on", done.stderr


@pytest.mark.parametrize("name", ["requirements.txt", "setup/requirements-source.txt"])
def test_every_package_is_pinned_by_hash(name: str) -> None:
    text = (ROOT / name).read_text()
    entries = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    assert entries
    for entry in entries:
        assert re.fullmatch(r"[\w.-]+==[\w.]+( +--hash=sha256:[0-9a-f]{64})+ *", entry), entry


def test_a_lock_file_is_written_as_it_is_read() -> None:
    text = (ROOT / "requirements.txt").read_text()
    found: dict[str, set[str]] = {}
    for entry in re.sub(r"\\\n", " ", text).splitlines():
        if (pin := re.match(r"([\w.-]+)==", entry)) is not None:
            found[pin[1]] = set(re.findall(r"sha256:(\w+)", entry))
    header = text[: text.index("ast_serialize")]
    assert lock.rendered(header, lock.pins(text), found) == text


def test_binary_packages_have_wheels_for_every_python_and_machine() -> None:
    """numpy's wheels differ for each of them: so many hashes it must have."""
    text = (ROOT / "requirements.txt").read_text()
    (entry,) = re.findall(r"^numpy==(?:.*\\\n)+.*", text, re.MULTILINE)
    assert len(re.findall("sha256:", entry)) == len(lock.PYTHONS) * len(lock.MACHINES)


def in_script(commands: str, policy: Path) -> subprocess.CompletedProcess[str]:
    """Run shell commands after the script's functions, as if root, with its policy-rc.d at `policy`."""
    locks = "root_lock=$policy.lock; root_failed=$policy.failed"
    stand_ins = f'policy={policy}; {locks}; id() {{ echo 0; }}; trap \'rm -f -- "$log" "$root_lock"\' EXIT'
    program = f"source {SCRIPT}; set +e; {stand_ins}\n{commands}"
    return subprocess.run(
        ["bash", "-c", program, "test"], capture_output=True, text=True, timeout=20, check=False
    )


@pytest.mark.parametrize("built", [False, True])
def test_what_a_kernel_build_lacks_is_named_before_anything_is_made(
    tmp_path: Path, policy: Path, built: bool
) -> None:
    """`--guests`, as an ordinary user on a machine with everything but flex and bison."""
    if built:
        (tmp_path / "refabric/kernels/6.12-0").mkdir(parents=True)
        (tmp_path / "refabric/kernels/6.12-0/linux").touch()
    done = in_script(
        f"""
        id() {{ echo 1000; }}; XDG_CACHE_HOME={tmp_path}
        dpkg-query() {{
            shift 3
            for each in "$@"; do case $each in flex|bison) ;; *) echo "$each installed" ;; esac; done
        }}
        become_owner() {{ echo went on; exit 0; }}
        main --quiet --guests
        """,
        policy,
    )
    if built:
        assert done.stdout == "went on\n"
        return
    assert done.returncode == 3 and not done.stdout
    assert done.stderr == "setup: missing packages: flex bison - run: sudo setup/install.sh --guests\n"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy-rc.d"


def ours(pid: int) -> str:
    return f"#!/bin/sh\n# refabric setup {pid}\nif [ -d /proc/{pid} ]; then exit 101; fi\n"


@pytest.mark.parametrize("before", [None, THEIRS])
def test_a_policy_is_put_aside_and_comes_back(policy: Path, before: str | None) -> None:
    if before is not None:
        policy.write_text(before)
    done = in_script(f"policy_away || exit 9; sh {policy}; echo $?; policy_back", policy)
    assert (done.returncode, done.stdout) == (0, "101\n"), done.stderr
    assert (policy.read_text() if policy.exists() else None) == before
    assert list(policy.parent.iterdir()) == ([policy] if before else [])


@pytest.mark.parametrize("stage", ["linked", "replaced", "moved back"])
def test_after_a_kill_the_next_run_brings_the_policy_back(policy: Path, stage: str) -> None:
    saved = policy.with_name("policy-rc.d.refabric")
    saved.write_text(THEIRS)
    if stage == "linked":
        policy.hardlink_to(saved)
    elif stage == "replaced":
        policy.write_text(ours(DEAD_PID))
    done = in_script("policy_away && policy_back", policy)
    assert done.returncode == 0, done.stderr
    assert policy.read_text() == THEIRS
    assert not saved.exists()


def test_a_saved_policy_is_never_overwritten(policy: Path) -> None:
    saved = policy.with_name("policy-rc.d.refabric")
    saved.write_text(THEIRS)
    policy.write_text("#!/bin/sh\nexit 0\n")
    assert in_script("policy_away", policy).returncode == 1
    assert saved.read_text() == THEIRS
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"


def test_the_policy_of_a_setup_that_is_at_work_stays(policy: Path) -> None:
    policy.write_text(ours(1))
    assert in_script("policy_away", policy).returncode == 1
    assert in_script("policy_back", policy).returncode == 0
    assert policy.read_text() == ours(1)


@pytest.mark.parametrize(
    "words",
    [
        "NewConnectionError('...: Failed to establish a new connection: [Errno -3] Temporary failure in name "
        "resolution')",
        "fatal: unable to access: Could not resolve host: example.org",
    ],
)
def test_being_offline_is_one_line(tmp_path: Path, words: str) -> None:
    pip = tmp_path / "bin" / "pip"
    pip.parent.mkdir()
    pip.write_text(f'#!/bin/sh\necho "{words}"\nexit 1\n')
    pip.chmod(0o755)
    done = in_script(f"venv={tmp_path}; quiet=yes; fetch_python installing none.txt", tmp_path / "none")
    assert done.returncode == 3
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "setup: installing: the package index cannot be reached; connect this machine and run "
        "setup/install.sh again"
    )
    assert len(done.stderr.strip().splitlines()) == 2, done.stderr


def test_what_is_compiled_is_counted_until_the_step_ends(policy: Path) -> None:
    step = "echo '  [3/9] Building CXX object a.o'; sleep 1.6; exit 0"
    commands = f'count_every_s=1; run_logged compiling sh -c "{step}"; echo "left: $(jobs -p)"; ls "$log"'
    done = in_script(commands, policy)
    said = r"setup: compiling\nsetup: 3 of 9 steps after \d s\nls: .*\n"
    assert re.fullmatch(said, done.stderr), done.stderr
    assert done.stdout == "left: \n"


def test_sip_servers_are_installed_behind_the_guard(policy: Path) -> None:
    """No service of a package may start meanwhile, and none is enabled after."""
    packages = "dpkg-query() { echo 'redis-server installed'; }"
    get = 'get() { echo "got $*"; [ -x "$policy" ] && ! "$policy"; }'
    done = in_script(f"{packages}; {get}; not_at_boot() {{ echo disabled $*; }}; install_ims", policy)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "got kamailio kamailio-redis-modules sip-tester",
        "disabled kamailio redis-server",
    ]
    assert not policy.exists()


def test_sip_servers_that_cannot_be_installed_are_named(policy: Path) -> None:
    done = in_script("dpkg-query() { :; }; get() { false; }; install_ims", policy)
    assert done.returncode == 3
    assert "could not install kamailio" in done.stderr and "setup/install.sh --ims" in done.stderr


def test_what_could_not_be_installed_is_not_tried_again_by_each_run(policy: Path) -> None:
    stand_ins = "dpkg-query() { :; }; get() { echo got $*; false; }"
    try_ = "install_optional 'there are no bridges' bridge-utils; install_ovs"
    done = in_script(f"{stand_ins}; {try_}; quiet=yes; {try_}; quiet=no; {try_}", policy)
    assert done.stdout.splitlines() == ["got bridge-utils", "got openvswitch-switch"] * 2
    assert done.stderr.count("apt-get could not install bridge-utils (there are no bridges)") == 2


def test_a_clone_is_locked_by_a_file_that_no_other_user_can_open(tmp_path: Path) -> None:
    file = tmp_path / ".setup-lock"
    take = f"lock {file} 'in this clone'"
    wait = f"exec 9>&-; (flock 8; sleep 1) 8<>{file} & sleep 0.3; {take} && echo taken"
    done = in_script(f"umask 0; {take}; {wait}", tmp_path / "none")
    assert file.stat().st_mode & 0o777 == 0o600
    assert done.stdout == "taken\n"
    said = r"setup: another setup/install.sh \(process \d+\) is at work in this clone; waiting for it\n"
    assert re.fullmatch(said, done.stderr), done.stderr


CORE = """venv={folder}; root={folder}; modules_are_in_place() {{ true; }}; core_sources() {{ echo core; }}
lock_clone() {{ echo locked; }}; core_sources | fingerprint - >{folder}/.refabric-core; install_core"""
STUBGEN = """#!/bin/sh
echo "$*" >>"{log}"
while [ $# -gt 1 ]; do [ "$1" != --output-file ] || echo stub >"$2"; shift; done
"""


def test_a_stub_of_the_core_that_is_missing_is_made_without_building(tmp_path: Path) -> None:
    log, beside = tmp_path / "log", tmp_path / "lib" / "python3.99" / "site-packages" / "fabric"
    for folder in (tmp_path / "bin", beside):
        folder.mkdir(parents=True)
    for name in ("pip", "python"):
        (tmp_path / "bin" / name).write_text(STUBGEN.format(log=log))
        (tmp_path / "bin" / name).chmod(0o755)
    for expected in ("locked\n", ""):
        done = in_script(CORE.format(folder=tmp_path), tmp_path / "none")
        assert (done.returncode, done.stdout) == (0, expected), done.stderr
    (call,) = log.read_text().splitlines()
    assert call.startswith("-m nanobind.stubgen ") and "--module fabric._core" in call
    assert (beside / "_core.pyi").read_text() == "stub\n"


DEPLOY = ROOT / "deploy"


def test_the_dev_container_builds_from_the_dockerfile() -> None:
    folder = ROOT / ".devcontainer"
    settings = json.loads((folder / "devcontainer.json").read_text())
    assert (folder / settings["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert f"USER {settings['remoteUser']}\n" in (DEPLOY / "Dockerfile").read_text()


def test_what_the_files_call_exists() -> None:
    for path in [*DEPLOY.iterdir(), ROOT / ".devcontainer" / "devcontainer.json"]:
        called = re.findall(r"(?:/opt/refabric/|\./|\b)(setup/install\.sh|run_mptcp\.sh)", path.read_text())
        assert called, path.name
        assert all((ROOT / name).exists() for name in called)
        assert "REPOSITORY" in path.read_text() or path.name != "cloud-init.yaml"


def test_cloud_init_has_its_first_line() -> None:
    assert (DEPLOY / "cloud-init.yaml").read_text().startswith("#cloud-config\n")


@pytest.mark.parametrize(
    "check",
    [
        ("hadolint", "--failure-threshold", "warning", "deploy/Dockerfile"),
        ("ruby", "-c", "deploy/Vagrantfile"),
        ("cloud-init", "schema", "--config-file", "deploy/cloud-init.yaml"),
        ("bash", "-n", "tests/bare/run.sh"),
    ],
)
def test_their_own_checkers_accept_them(check: tuple[str, ...]) -> None:
    if shutil.which(check[0]) is None:
        pytest.skip(f"{check[0]} is not installed")
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
