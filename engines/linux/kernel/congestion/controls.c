// SPDX-License-Identifier: GPL-2.0
/* Registration of the compiled-in congestion controls, and /proc/refabric/congestion: one line per algorithm
 * with its name, the ACKs it has seen, and the window reductions it has made.
 */
#include <linux/init.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "controls.h"

static LIST_HEAD(controls);

int refabric_register(struct refabric_control *control)
{
	int error = tcp_register_congestion_control(&control->ops);

	if (!error)
		list_add_tail(&control->list, &controls);
	return error;
}

static int show(struct seq_file *file, void *unused)
{
	struct refabric_control *control;

	list_for_each_entry(control, &controls, list)
		seq_printf(file, "%s %lld %lld\n", control->ops.name, atomic64_read(&control->acks),
			   atomic64_read(&control->losses));
	return 0;
}

static struct proc_dir_entry *folder;

int refabric_file(const char *name, umode_t mode, const struct proc_ops *ops)
{
	struct proc_dir_entry *made = ops ? proc_create(name, mode, folder, ops) : proc_mkdir(name, folder);

	return made ? 0 : -ENOMEM;
}

/* Before the algorithms, some of which have files of their own. */
static int __init refabric_proc(void)
{
	folder = proc_mkdir("refabric", NULL);
	if (!folder || !proc_create_single("congestion", 0444, folder, show))
		return -ENOMEM;
	return 0;
}
device_initcall(refabric_proc);
