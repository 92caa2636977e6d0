"""Changes with which a program reads the virtual clock without a system call.

User-Mode Linux's vDSO makes a system call of each reading: 62 % of all calls in a run of 16 hosts. In virtual
time nothing happens between two events. So the kernel leaves the time, and the time of the next event, in a
page that the process has anyway (stub_data). The vDSO advances the clock there by what a reading costs in the
kernel (256 ns), as long as no event is reached. The kernel takes over the time when the process stops.
"""

from __future__ import annotations

from engines.linux.kernel.edits.edit import Edit, after, before

WHY = "clock readings without a system call"
_TIME = "arch/um/kernel/time.c"
_STUB_DATA = "arch/um/include/shared/skas/stub-data.h"
_VDSO = "arch/x86/um/vdso/um_vdso.c"
_PROCESS = "arch/um/os-Linux/skas/process.c"
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

EDITS = (
    before(_STUB_DATA, WHY, "struct stub_data {\n", _PAGE),
    before(
        _STUB_DATA,
        WHY,
        "\t/* Stack for our signal handlers",
        "\tstruct stub_clock clock __aligned(64);\n\n",
    ),
    after(
        "arch/um/kernel/skas/mmu.c",
        WHY,
        "static_assert(sizeof(struct stub_data) == STUB_DATA_PAGES * UM_KERN_PAGE_SIZE);\n",
        "static_assert(offsetof(struct stub_data, clock) == STUB_CLOCK_OFFSET);\n",
    ),
    Edit(_VDSO, WHY, _GETTIME, _READ + _GETTIME + "\tif (read_clock(clock, ts))\n\t\treturn 0;\n\n"),
    before(
        "arch/um/include/shared/timetravel.h", WHY, "#endif /* _UM_TIME_TRAVEL_H_ */", _DECLARED
    ),
    after(_TIME, WHY, "#include <shared/init.h>\n", "#include <stub-data.h>\n"),
    before(_TIME, WHY, "static irqreturn_t um_timer(", _TO_AND_FROM),
    before(
        _TIME,
        WHY,
        "\terr = request_irq(TIMER_IRQ",
        "\tBUILD_BUG_ON(STUB_CLOCK_STEP != TIMER_MULTIPLIER);\n\tBUG_ON(STUB_DATA != 0x7fc0000000UL);\n\n",
    ),
    before(
        _PROCESS, WHY, "\t\tif (ptrace(op, pid, 0, 0)) {\n", "\t\ttime_travel_to_user(current_mm_id());\n"
    ),
    before(
        _PROCESS, WHY, "\t\tregs->is_user = 1;\n", "\t\ttime_travel_from_user(current_mm_id());\n"
    ),
)  # fmt: skip
