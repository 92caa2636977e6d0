"""What a kernel is built from, and a hash of it: package, configuration, our own files, and edits of the
package's source, each with its reason.

The inserted texts are parts of the Linux kernel and have its licence (GPL-2.0).
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from pathlib import Path

from common.errors import RunError
from model.congestion import in_guests, kernel_name

PACKAGE = "linux-source-6.12"
VERSION = "6.12.117-1~deb12u1"
"""The Debian package, and the version of it with which the edits were written and tested."""
HERE = Path(__file__).parent
FRAGMENT = HERE / "fragment.config"
CONGESTION = HERE / "congestion"
_ROOT = HERE.parents[2]
SHARED = tuple(
    _ROOT / name
    for name in (
        "engines/emulation/congestion/bpf/arithmetic.h",
        "engines/emulation/congestion/bpf/ccp_flow.h",
        "fabric/ccp/datapath.h",
    )
)
"""The algorithms' formulas and the agent's datapath. BPF programs, simulator and tests are compiled from the
same files."""
FOLDER = "net/refabric"
"""Where our files go in the kernel's source."""
OF_LINUX = ("reno", "cubic", "bbr", "dctcp")


def own_files() -> tuple[Path, ...]:
    """Return the files that are copied into FOLDER."""
    return (*sorted(path for path in CONGESTION.iterdir() if path.is_file()), *SHARED)


@functools.cache
def inputs() -> str:
    """Return a hash of everything but the package's version that decides what a kernel does."""
    digest = hashlib.sha256()
    for path in (FRAGMENT, *own_files()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    for edit in EDITS:
        digest.update(f"{edit.path}\0{edit.old}\0{edit.new}\0".encode())
    return digest.hexdigest()[:12]


def options(text: str | None = None) -> dict[str, str]:
    """Return the options of a configuration (default: the fragment): their values by name, "n" if not set."""
    found = {}
    for line in (FRAGMENT.read_text() if text is None else text).splitlines():
        if line.startswith("# CONFIG_") and line.endswith(" is not set"):
            found[line.split()[1]] = "n"
        elif line.startswith("CONFIG_"):
            name, _, value = line.partition("=")
            found[name] = value
    return found


def not_in_force(config: str) -> list[str]:
    """Return the options of the fragment that have another value in the kernel's own configuration."""
    actual = options(config)
    return [name for name, value in options().items() if actual.get(name, "n") != value]


def change(tree: Path) -> None:
    """Apply the edits to an unpacked source, and add our files.

    Raises RunError where an edit does not fit.
    """
    for edit in EDITS:
        path = tree / edit.path
        if not path.is_file():
            raise RunError(f"changing {edit.path} of the kernel's source ({edit.why}): there is no such file")
        path.write_text(edit.applied(path.read_text()))
    folder = tree / FOLDER
    folder.mkdir()
    for path in own_files():
        (folder / path.name).write_bytes(path.read_bytes())


def congestion_controls() -> tuple[str, ...]:
    """Return the names in the kernel of the congestion controls that are compiled in."""
    return (*OF_LINUX, *map(kernel_name, in_guests()))


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in the file `path` (relative to the source), because of `why`."""

    path: str
    why: str
    old: str
    new: str

    def applied(self, text: str) -> str:
        """Return `text` with the change. Raises RunError unless `old` occurs once and `new` never."""
        found = text.count(self.old)
        if self.new and self.new in text:
            happened = "it has this change already"
        elif found == 1:
            return text.replace(self.old, self.new)
        else:
            first = self.old.strip().splitlines()[0].strip()
            happened = f"`{first}` and what follows it occurs {found} times, not once"
        raise RunError(
            f"changing {self.path} of the kernel's source ({self.why}): {happened}; "
            "this source is not the version that refabric's changes were written for"
        )


def after(path: str, why: str, text: str, added: str) -> Edit:
    """Return the edit that puts `added` after `text`."""
    return Edit(path, why, text, text + added)


def before(path: str, why: str, text: str, added: str) -> Edit:
    """Return the edit that puts `added` before `text`."""
    return Edit(path, why, text, added + text)


_TCP = (
    Edit(
        "arch/um/Kconfig",
        "timers of 4 ms, as on the kernels of distributions; User-Mode Linux has 10 ms",
        "config HZ\n\tint\n\tdefault 100\n",
        "config HZ\n\tint\n\tdefault 250\n",
    ),
    after(
        "net/Makefile",
        "coupled congestion controls: BPF cannot add them where BPF programs are not compiled",
        "obj-$(CONFIG_MPTCP)\t\t+= mptcp/\n",
        "obj-$(CONFIG_MPTCP)\t\t+= refabric/\n",
    ),
)
"""Changes that make TCP behave as on other machines: the timer's frequency and our congestion controls."""

_RANDOM = """static unsigned long long rng_state;
static int rng_seeded;

static int __init set_rng_seed(char *str, int *add)
{
	rng_state = strtoull(str, NULL, 0);
	rng_seeded = 1;
	*add = 0;
	return 0;
}

__uml_setup("rng_seed=", set_rng_seed,
"rng_seed=<number>\\n"
"    Draw the kernel's randomness from a generator with this seed of 64 bits,\\n"
"    instead of from the host.\\n");

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). The kernel's generator hashes what it returns. */
static unsigned long long rng_next(void)
{
	unsigned long long z = rng_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)
{
	char *out = buf;
	size_t done, part;

	if (!rng_seeded)
		return getrandom(buf, len, flags);
	for (done = 0; done < len; done += part) {
		unsigned long long word = rng_next();

		part = len - done < sizeof(word) ? len - done : sizeof(word);
		memcpy(out + done, &word, part);
	}
	return len;
}
"""
_SAME_ADDRESSES = """	/*
	 * The host's randomisation moves the heap, which is part of the guest's
	 * memory: its size and the addresses in it would differ in every run.
	 */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) &&
	    personality(PER_LINUX | ADDR_NO_RANDOMIZE) != -1)
		execve("/proc/self/exe", argv, envp);

"""

_DETERMINISM = (
    Edit(
        "arch/um/os-Linux/skas/process.c",
        "a process of the guest that computes ends with the kernel, whatever ends the kernel",
        "(void *) PTRACE_O_TRACESYSGOOD)",
        "(void *) (PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))",
    ),
    Edit(
        "arch/um/os-Linux/util.c",
        "all randomness of the guest from one seed",
        "ssize_t os_getrandom(void *buf, size_t len, unsigned int flags)\n"
        "{\n\treturn getrandom(buf, len, flags);\n}\n",
        _RANDOM,
    ),
    Edit(
        "init/main.c",
        "the command line names folders of the machine, which must not change the randomness",
        "random_init_early(command_line);",
        'random_init_early("");',
    ),
    after(
        "arch/um/os-Linux/main.c",
        "the call personality(2)",
        "#include <sys/resource.h>\n",
        "#include <sys/personality.h>\n",
    ),
    after(
        "arch/um/os-Linux/main.c",
        "the same addresses and the same amount of memory in every run",
        "int __init main(int argc, char **argv, char **envp)\n{\n\tchar **new_argv;\n\tint ret, i, err;\n\n",
        _SAME_ADDRESSES,
    ),
    Edit(
        "arch/um/kernel/time.c",
        "no signal of the machine per timer: in virtual time only the kernel itself moves the clock",
        "if (get_current()->mm != NULL)",
        "if (get_current()->mm != NULL && time_travel_mode != TT_MODE_INFCPU)",
    ),
)
"""Changes after which the same seed gives the same run, and no process of a guest outlives its kernel."""

_FPU = "floating-point registers stay in the process between system calls"
_PROCESS = "arch/um/os-Linux/skas/process.c"
_PUT = """		if (put_fp_registers(pid, regs->fp)) {
			printk(UM_KERN_ERR "%s - ptrace set fp regs failed, errno = %d\\n",
			       __func__, errno);
			fatal_sigsegv();
		}
"""
_PUT_IF_OTHERS = """		if (current_mm_id()->fp_owner != regs) {
			fp_save(current_mm_id());
			if (put_fp_registers(pid, regs->fp)) {
				printk(UM_KERN_ERR "%s - ptrace set fp regs failed, errno = %d\\n",
				       __func__, errno);
				fatal_sigsegv();
			}
			current_mm_id()->fp_owner = regs;
		}
"""
_GET = """		if (get_fp_registers(pid, regs->fp)) {
			printk(UM_KERN_ERR "%s -  get_fp_registers failed, errno = %d\\n",
			       __func__, errno);
			fatal_sigsegv();
		}

"""
_SAVE = """/* Read the floating-point registers of the thread whose they are, if the process has them. */
void fp_save(struct mm_id *mm_idp)
{
	struct uml_pt_regs *owner = mm_idp->fp_owner;

	mm_idp->fp_owner = NULL;
	if (owner && get_fp_registers(mm_idp->pid, owner->fp)) {
		printk(UM_KERN_ERR "%s - ptrace get fp regs failed, errno = %d\\n",
		       __func__, errno);
		fatal_sigsegv();
	}
}

"""
_FORGET = """#define deactivate_mm deactivate_mm
static inline void deactivate_mm(struct task_struct *tsk, struct mm_struct *mm)
{
	/* At exit and exec: the registers of this thread are not needed any more. */
	if (mm && mm->context.id.fp_owner == &tsk->thread.regs.regs)
		mm->context.id.fp_owner = NULL;
}

"""

_FLOATING_POINT = (
    after(
        "arch/um/include/shared/skas/mm_id.h",
        _FPU,
        "\tint syscall_data_len;\n",
        "\tstruct uml_pt_regs *fp_owner;\n",
    ),
    after(
        "arch/um/include/shared/skas/mm_id.h",
        _FPU,
        "void __switch_mm(struct mm_id *mm_idp);\n",
        "void fp_save(struct mm_id *mm_idp);\n",
    ),
    after("arch/um/kernel/skas/mmu.c", _FPU, "\tnew_id->stack = stack;\n", "\tnew_id->fp_owner = NULL;\n"),
    Edit(_PROCESS, _FPU, _PUT, _PUT_IF_OTHERS),
    Edit(_PROCESS, _FPU, _GET, ""),
    before(
        _PROCESS, _FPU, "void userspace(struct uml_pt_regs *regs, unsigned long *aux_fp_regs)\n{", _SAVE
    ),
    before(
        "arch/um/kernel/process.c",
        _FPU,
        "\t  \tmemcpy(&p->thread.regs.regs, current_pt_regs(),\n",
        "\t\tfp_save(&current->mm->context.id);\n",
    ),
    before(
        "arch/um/include/asm/mmu_context.h", _FPU, "#include <asm-generic/mmu_context.h>\n", _FORGET
    ),
    before(
        "arch/x86/um/signal.c",
        _FPU,
        "\t\terr = copy_from_user(regs->regs.fp, (void *)sc.fpstate,\n",
        "\t\tfp_save(&current->mm->context.id);\n",
    ),
    before(
        "arch/x86/um/signal.c",
        _FPU,
        "\t\tif (copy_to_user(to_fp, regs->regs.fp, sizeof(struct _xstate)))\n",
        "\t\tfp_save(&current->mm->context.id);\n",
    ),
)  # fmt: skip
"""Changes that leave the floating-point registers in the process between system calls.

User-Mode Linux reads and writes all of them (2.4 kB with AVX-512) at every system call, by ptrace(2). With
these changes they stay in the process that runs the guest's program, and `fp_owner` is their thread. They are
read when another thread of that process is to run, at fork and at signals.
"""

_TICK = "clock readings without a system call"
_TIME = "arch/um/kernel/time.c"
_STUB_DATA = "arch/um/include/shared/skas/stub-data.h"
_VDSO = "arch/x86/um/vdso/um_vdso.c"
_PAGE = """/* The virtual clock as the vDSO reads it. Times are in ns. */
struct stub_clock {
	unsigned long long now;   /* virtual time */
	unsigned long long limit; /* the next event: a reading that would reach it is a system call */
	unsigned long long mono;  /* CLOCK_MONOTONIC at `now` */
	unsigned long long real;  /* CLOCK_REALTIME at `now` */
};

#define STUB_CLOCK_OFFSET (UM_KERN_PAGE_SIZE - 64)
#define STUB_CLOCK_STEP 256 /* the cost of a reading, as in the kernel: TIMER_MULTIPLIER */

"""
_READ = """/* As in stub-data.h. The address is the one of STUB_DATA, which time.c checks. */
struct stub_clock {
	unsigned long long now, limit, mono, real;
};

#define STUB_CLOCK ((volatile struct stub_clock *)(0x7fc0000000UL + 4096 - 64))
#define STUB_CLOCK_STEP 256

static int read_clock(clockid_t clock, struct __kernel_old_timespec *ts)
{
	volatile struct stub_clock *page = STUB_CLOCK;
	unsigned long long ns;

	if ((clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME) ||
	    page->now + STUB_CLOCK_STEP >= page->limit)
		return 0;
	page->now += STUB_CLOCK_STEP;
	page->mono += STUB_CLOCK_STEP;
	page->real += STUB_CLOCK_STEP;
	ns = clock == CLOCK_MONOTONIC ? page->mono : page->real;
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return 1;
}

"""
_GETTIME = "int __vdso_clock_gettime(clockid_t clock, struct __kernel_old_timespec *ts)\n{\n\tlong ret;\n\n"
_TO_AND_FROM = """/* Let the process that runs next read the clock by itself until the next event (vDSO). */
void time_travel_to_user(struct mm_id *mm_idp)
{
	struct stub_clock *page = &((struct stub_data *)mm_idp->stack)->clock;
	struct time_travel_event *next;
	unsigned long flags;

	page->limit = 0;
	if (time_travel_mode != TT_MODE_INFCPU)
		return;
	local_irq_save(flags);
	next = time_travel_first_event();
	page->mono = ktime_get_mono_fast_ns();
	page->real = ktime_get_real_fast_ns();
	page->now = time_travel_time;
	page->limit = next ? next->time : S64_MAX;
	local_irq_restore(flags);
}

/* Take over the time that its readings took. */
void time_travel_from_user(struct mm_id *mm_idp)
{
	struct stub_clock *page = &((struct stub_data *)mm_idp->stack)->clock;

	if (time_travel_mode == TT_MODE_INFCPU)
		time_travel_set_time(page->now);
}

"""
_DECLARED = """struct mm_id;
void time_travel_to_user(struct mm_id *mm_idp);
void time_travel_from_user(struct mm_id *mm_idp);

"""

_CLOCK = (
    before(_STUB_DATA, _TICK, "struct stub_data {\n", _PAGE),
    before(
        _STUB_DATA,
        _TICK,
        "\t/* Stack for our signal handlers",
        "\tstruct stub_clock clock __aligned(64);\n\n",
    ),
    after(
        "arch/um/kernel/skas/mmu.c",
        _TICK,
        "static_assert(sizeof(struct stub_data) == STUB_DATA_PAGES * UM_KERN_PAGE_SIZE);\n",
        "static_assert(offsetof(struct stub_data, clock) == STUB_CLOCK_OFFSET);\n",
    ),
    Edit(_VDSO, _TICK, _GETTIME, _READ + _GETTIME + "\tif (read_clock(clock, ts))\n\t\treturn 0;\n\n"),
    before(
        "arch/um/include/shared/timetravel.h", _TICK, "#endif /* _UM_TIME_TRAVEL_H_ */", _DECLARED
    ),
    after(_TIME, _TICK, "#include <shared/init.h>\n", "#include <stub-data.h>\n"),
    before(_TIME, _TICK, "static irqreturn_t um_timer(", _TO_AND_FROM),
    before(
        _TIME,
        _TICK,
        "\terr = request_irq(TIMER_IRQ",
        "\tBUILD_BUG_ON(STUB_CLOCK_STEP != TIMER_MULTIPLIER);\n\tBUG_ON(STUB_DATA != 0x7fc0000000UL);\n\n",
    ),
    before(
        _PROCESS, _TICK, "\t\tif (ptrace(op, pid, 0, 0)) {\n", "\t\ttime_travel_to_user(current_mm_id());\n"
    ),
    before(
        _PROCESS, _TICK, "\t\tregs->is_user = 1;\n", "\t\ttime_travel_from_user(current_mm_id());\n"
    ),
)  # fmt: skip
"""Changes with which a program reads the virtual clock without a system call.

User-Mode Linux's vDSO makes a system call of each reading: 62 % of all calls in a run of 16 hosts. In virtual
time nothing happens between two events. So the kernel leaves the time, and the time of the next event, in a
page that the process has anyway (stub_data). The vDSO advances the clock there by what a reading costs in the
kernel (256 ns), as long as no event is reached. The kernel takes over the time when the process stops.
"""

_LARGE = "the registers of CPUs with AMX take 11 kB; ptrace(2) takes back all of them or none"
_REGISTERS = "arch/x86/um/os-Linux/registers.c"
_TRANSFER = """		iov.iov_base = fp_regs;
		iov.iov_len = FP_SIZE * sizeof(unsigned long);
		if (ptrace(PTRACE_{}ETREGSET, pid, NT_X86_XSTATE, &iov) < 0)
			return -errno;
"""
_TRANSFER_ALL = """		iov.iov_base = machine_fp;
		iov.iov_len = sizeof(machine_fp);
		if (ptrace(PTRACE_{}ETREGSET, pid, NT_X86_XSTATE, &iov) < 0)
			return -errno;
"""
_COPY = "\t\tmemcpy({}, FP_SIZE * sizeof(unsigned long));\n"
_MACHINE_FP = """/*
 * All floating-point registers as the machine's kernel has them. Beyond FP_SIZE they are 0: the tiles of AMX,
 * for which no process of a guest gets the permission. One buffer is enough, because there is one CPU.
 */
static char machine_fp[16384] __attribute__((aligned(64)));

"""

_ANY_CPU = (
    before(_REGISTERS, _LARGE, "static int have_xstate_support;\n", _MACHINE_FP),
    after(_REGISTERS, _LARGE, "#include <linux/elf.h>\n", "#include <string.h>\n"),
    Edit(
        _REGISTERS, _LARGE, _TRANSFER.format("G"),
        _TRANSFER_ALL.format("G") + _COPY.format("fp_regs, machine_fp"),
    ),
    Edit(
        _REGISTERS, _LARGE, _TRANSFER.format("S"),
        _COPY.format("machine_fp, fp_regs") + _TRANSFER_ALL.format("S"),
    ),
)  # fmt: skip
"""Changes with which guests run on CPUs with registers that User-Mode Linux of 6.12 does not know."""

EDITS: tuple[Edit, ...] = (*_TCP, *_DETERMINISM, *_FLOATING_POINT, *_ANY_CPU, *_CLOCK)
"""In the order in which they are applied."""
