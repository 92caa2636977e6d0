"""Changes that leave the floating-point registers in the process between system calls.

User-Mode Linux reads and writes all of them (2.4 kB with AVX-512) at every system call, by ptrace(2). With
these changes they stay in the process that runs the guest's program, and `fp_owner` is their thread. They are
read when another thread of that process is to run, at fork and at signals.
"""

from __future__ import annotations

from engines.linux.kernel.edits.edit import Edit, after, before

WHY = "floating-point registers stay in the process between system calls"
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

EDITS = (
    after(
        "arch/um/include/shared/skas/mm_id.h",
        WHY,
        "\tint syscall_data_len;\n",
        "\tstruct uml_pt_regs *fp_owner;\n",
    ),
    after(
        "arch/um/include/shared/skas/mm_id.h",
        WHY,
        "void __switch_mm(struct mm_id *mm_idp);\n",
        "void fp_save(struct mm_id *mm_idp);\n",
    ),
    after(
        "arch/um/kernel/skas/mmu.c", WHY, "\tnew_id->stack = stack;\n", "\tnew_id->fp_owner = NULL;\n"
    ),
    Edit(_PROCESS, WHY, _PUT, _PUT_IF_OTHERS),
    Edit(_PROCESS, WHY, _GET, ""),
    before(_PROCESS, WHY, "void userspace(struct uml_pt_regs *regs, unsigned long *aux_fp_regs)\n{", _SAVE),
    before(
        "arch/um/kernel/process.c",
        WHY,
        "\t  \tmemcpy(&p->thread.regs.regs, current_pt_regs(),\n",
        "\t\tfp_save(&current->mm->context.id);\n",
    ),
    before(
        "arch/um/include/asm/mmu_context.h", WHY, "#include <asm-generic/mmu_context.h>\n", _FORGET
    ),
    before(
        "arch/x86/um/signal.c",
        WHY,
        "\t\terr = copy_from_user(regs->regs.fp, (void *)sc.fpstate,\n",
        "\t\tfp_save(&current->mm->context.id);\n",
    ),
    before(
        "arch/x86/um/signal.c",
        WHY,
        "\t\tif (copy_to_user(to_fp, regs->regs.fp, sizeof(struct _xstate)))\n",
        "\t\tfp_save(&current->mm->context.id);\n",
    ),
)  # fmt: skip
