// SPDX-License-Identifier: GPL-2.0
/* The datapath's conversation with its agent, in files below /proc/refabric/ccp:
 *
 *   programs  write: the fold programs, CCP_PROGRAMS of struct ccp_program; flows begin with the first
 *   control   write: time of the agent's last beat in ns and the time between reports in us, two u64
 *   agent     read: struct ccp_event, whole ones; write: struct refabric_command, whole ones; poll
 *   activity  read: the numbers of struct ccp_activity, commands that came after their time, and the largest delay in ns
 *
 * A command is carried out at its time, by a timer. Nothing an agent does takes virtual time, so its delay is exactly
 * what it adds to the time of the event. A command that comes too late is carried out at once, and counted.
 */
#include <linux/hrtimer.h>
#include <linux/poll.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "ccp.h"

#define KEPT_EVENTS (1U << 15)
#define RETRY_NS 1000 /* while a program holds the socket */

struct ccp_program refabric_programs[CCP_PROGRAMS];
struct ccp_activity refabric_activity;

struct waiting_command {
	struct list_head list;
	struct refabric_command command;
};

static struct {
	u64 heartbeat_ns, report_us;
} agent;
static bool has_agent;
static DEFINE_SPINLOCK(lock); /* of events and commands */
static struct ccp_event *events;
static u32 first_event, next_event;
static DECLARE_WAIT_QUEUE_HEAD(readers);
static LIST_HEAD(commands);
static struct hrtimer due;
static u64 late_commands, most_late_ns;

u64 refabric_report_us(void)
{
	return agent.report_us;
}

bool refabric_is_silent(u64 now_ns)
{
	return !has_agent || ccp_is_late(now_ns, agent.heartbeat_ns);
}

void refabric_tell(const struct refabric_flow *flow, u32 kind, u32 mss, u64 now_ns)
{
	struct ccp_event *event;

	if (!has_agent)
		return;
	spin_lock_bh(&lock);
	if (next_event - first_event == KEPT_EVENTS) {
		refabric_activity.unreported++;
		spin_unlock_bh(&lock);
		return;
	}
	event = &events[next_event++ % KEPT_EVENTS];
	*event = (struct ccp_event){
		.kind = kind,
		.flow = flow->number,
		.mss = mss,
		.program = flow->flow.program,
		.source = (__force u32)flow->sk->sk_rcv_saddr,
		.destination = (__force u32)flow->sk->sk_daddr,
		.at_ns = now_ns,
		.window = flow->flow.window,
	};
	memcpy(event->fields, &flow->flow.registers[CCP_REPORT], sizeof(event->fields));
	spin_unlock_bh(&lock);
	wake_up_interruptible(&readers);
}

static ssize_t read_events(struct file *file, char __user *to, size_t size, loff_t *at)
{
	size_t done = 0;

	while (size - done >= sizeof(struct ccp_event)) {
		struct ccp_event event;
		bool found;

		spin_lock_bh(&lock);
		found = first_event != next_event;
		if (found)
			event = events[first_event++ % KEPT_EVENTS];
		spin_unlock_bh(&lock);
		if (!found)
			break;
		if (copy_to_user(to + done, &event, sizeof(event)))
			return -EFAULT;
		done += sizeof(event);
	}
	return done ? done : -EAGAIN;
}

static __poll_t poll_events(struct file *file, poll_table *wait)
{
	poll_wait(file, &readers, wait);
	return first_event != next_event ? EPOLLIN | EPOLLRDNORM : 0;
}

static void schedule_first(void)
{
	struct waiting_command *first = list_first_entry_or_null(&commands, struct waiting_command, list);

	if (first)
		hrtimer_start(&due, ns_to_ktime(first->command.due_ns), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart carry_out(struct hrtimer *timer)
{
	struct waiting_command *first;

	while ((first = list_first_entry_or_null(&commands, struct waiting_command, list))) {
		u64 now_ns = ktime_get_ns();

		if (first->command.due_ns > now_ns) {
			hrtimer_set_expires(timer, ns_to_ktime(first->command.due_ns));
			return HRTIMER_RESTART;
		}
		if (!refabric_obey(&first->command)) {
			hrtimer_set_expires(timer, ns_to_ktime(now_ns + RETRY_NS));
			return HRTIMER_RESTART;
		}
		most_late_ns = max(most_late_ns, now_ns - first->command.due_ns);
		list_del(&first->list);
		kfree(first);
	}
	return HRTIMER_NORESTART;
}

static int accept(const struct refabric_command *command)
{
	struct waiting_command *waiting = kmalloc(sizeof(*waiting), GFP_KERNEL);
	bool is_only;

	if (!waiting)
		return -ENOMEM;
	waiting->command = *command;
	late_commands += command->due_ns < ktime_get_ns();
	spin_lock_bh(&lock);
	is_only = list_empty(&commands);
	list_add_tail(&waiting->list, &commands);
	if (is_only)
		schedule_first();
	spin_unlock_bh(&lock);
	return 0;
}

static ssize_t write_commands(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	size_t done;

	if (size % sizeof(struct refabric_command))
		return -EINVAL;
	for (done = 0; done < size; done += sizeof(struct refabric_command)) {
		struct refabric_command command;
		int error;

		if (copy_from_user(&command, from + done, sizeof(command)))
			return -EFAULT;
		error = accept(&command);
		if (error)
			return error;
	}
	return size;
}

static int open_agent(struct inode *inode, struct file *file)
{
	if (has_agent)
		return -EBUSY;
	if (!events)
		events = vmalloc(array_size(KEPT_EVENTS, sizeof(*events)));
	if (!events)
		return -ENOMEM;
	first_event = next_event = 0;
	has_agent = true;
	return 0;
}

static int close_agent(struct inode *inode, struct file *file)
{
	has_agent = false;
	return 0;
}

static ssize_t write_programs(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	if (size != sizeof(refabric_programs))
		return -EINVAL;
	return copy_from_user(refabric_programs, from, size) ? -EFAULT : size;
}

static ssize_t write_control(struct file *file, const char __user *from, size_t size, loff_t *at)
{
	if (size != sizeof(agent))
		return -EINVAL;
	return copy_from_user(&agent, from, size) ? -EFAULT : size;
}

static int show_activity(struct seq_file *file, void *unused)
{
	const struct ccp_activity *of = &refabric_activity;

	seq_printf(file, "%llu %llu %llu %llu %llu %llu %llu %llu\n", of->folded, of->reports, of->unreported,
		   of->commands, of->errors, of->fallbacks, late_commands, most_late_ns);
	return 0;
}

static int open_activity(struct inode *inode, struct file *file)
{
	return single_open(file, show_activity, NULL);
}

static const struct proc_ops agent_file = {
	.proc_open = open_agent,
	.proc_release = close_agent,
	.proc_read = read_events,
	.proc_write = write_commands,
	.proc_poll = poll_events,
};

static const struct proc_ops programs_file = { .proc_write = write_programs };

static const struct proc_ops control_file = { .proc_write = write_control };

static const struct proc_ops activity_file = {
	.proc_open = open_activity,
	.proc_read = seq_read,
	.proc_release = single_release,
};

static int __init refabric_ccp_agent(void)
{
	int error = refabric_file("ccp", 0, NULL);

	hrtimer_init(&due, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	due.function = carry_out;
	error = error ?: refabric_file("ccp/agent", 0600, &agent_file);
	error = error ?: refabric_file("ccp/programs", 0200, &programs_file);
	error = error ?: refabric_file("ccp/control", 0200, &control_file);
	return error ?: refabric_file("ccp/activity", 0444, &activity_file);
}
late_initcall(refabric_ccp_agent);
