// SPDX-License-Identifier: GPL-2.0
/* minTCP's window (Alizadeh et al., pFabric, SIGCOMM 2013, section 4.3): reno's with an upper limit; no reduction is
 * undone. That it learns of losses by timeouts alone is another program's work
 * (engines/emulation/congestion/bpf/hide_sacks.bpf.c). The limit in packets is written to /proc/refabric/mintcp; 0 is none.
 */
#include <linux/proc_fs.h>
#include <linux/uaccess.h>

#include "controls.h"

static u64 limit;

static void every_ack(struct sock *sk, u32 flags)
{
	refabric_count_ack(sk);
}

static u32 cut(struct sock *sk)
{
	refabric_count_loss(sk);
	return mintcp_after_loss(tcp_snd_cwnd(tcp_sk(sk)));
}

static void avoid(struct sock *sk, u32 ack, u32 acked)
{
	u32 most = mintcp_limit(limit);

	if (tcp_snd_cwnd(tcp_sk(sk)) < most)
		tcp_reno_cong_avoid(sk, ack, acked);
	if (tcp_snd_cwnd(tcp_sk(sk)) > most)
		tcp_snd_cwnd_set(tcp_sk(sk), most);
}

static u32 undo(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static struct refabric_control control = {
	.ops = {
		.ssthresh = cut,
		.cong_avoid = avoid,
		.in_ack_event = every_ack,
		.undo_cwnd = undo,
		.name = "rf_mintcp",
		.owner = THIS_MODULE,
		.flags = TCP_CONG_NON_RESTRICTED,
	},
};

static ssize_t set_limit(struct file *file, const char __user *text, size_t size, loff_t *at)
{
	int error = kstrtou64_from_user(text, size, 10, &limit);

	return error ? error : size;
}

static const struct proc_ops settings = {
	.proc_write = set_limit,
};

static int __init refabric_mintcp(void)
{
	int error = refabric_register(&control);

	return error ? error : refabric_file("mintcp", 0200, &settings);
}
late_initcall(refabric_mintcp);
