"""Changes after which the same seed gives the same run, and no process of a guest outlives its kernel."""

from __future__ import annotations

from engines.linux.kernel.edits.edit import Edit, after

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

EDITS = (
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
