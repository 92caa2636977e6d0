// SPDX-License-Identifier: GPL-2.0
/* The congestion control under an agent: fold programs (fabric/ccp/datapath.h) on every acknowledgement, windows from
 * the agent, Reno when it is silent. The BPF version is engines/emulation/congestion/bpf/ccp.bpf.c.
 *
 * This kernel has one CPU and no preemption: flows change in softirqs, and elsewhere only with softirqs off.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>

#include "ccp.h"

static DEFINE_HASHTABLE(flows, 10);
static u32 flows_so_far;

static struct refabric_flow **place_of(struct sock *sk)
{
	return inet_csk_ca(sk);
}

static u64 mss_of(struct sock *sk)
{
	return tcp_sk(sk)->mss_cache ? tcp_sk(sk)->mss_cache : 1;
}

static struct refabric_flow *flow_of(u32 number)
{
	struct refabric_flow *flow;

	hash_for_each_possible(flows, flow, node, number)
		if (flow->number == number)
			return flow;
	return NULL;
}

/* The SYN is one byte: who has sent no data is no flow. */
static struct refabric_flow *begun(struct sock *sk, u64 mss, u64 now_ns)
{
	struct refabric_flow *flow = *place_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (flow || tp->bytes_acked <= 1)
		return flow;
	flow = kzalloc(sizeof(*flow), GFP_ATOMIC);
	if (!flow)
		return NULL;
	*place_of(sk) = flow;
	flow->sk = sk;
	flow->last.delivered_ce = tp->delivered_ce;
	local_bh_disable();
	flow->number = ++flows_so_far;
	hash_add(flows, &flow->node, flow->number);
	local_bh_enable();
	ccp_begin(&flow->flow, refabric_programs, tcp_snd_cwnd(tp) * mss, now_ns / 1000);
	refabric_tell(flow, CREATED, mss, now_ns);
	return flow;
}

static void use(struct sock *sk, const struct refabric_flow *flow, u64 mss)
{
	tcp_snd_cwnd_set(tcp_sk(sk), ccp_packets(&flow->flow, mss));
	sk->sk_pacing_rate = ccp_pacing_rate(&flow->flow, tcp_sk(sk), mss);
	if (flow->flow.rate)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

/* Return the flow's program, with what the agent has staged. */
static const struct ccp_program *changed(struct refabric_flow *flow, u64 now_us)
{
	bool is_new = ccp_take_program(&flow->flow);
	const struct ccp_program *program = &refabric_programs[flow->flow.program];

	if (is_new)
		ccp_change(&flow->flow, program, now_us);
	ccp_take_controls(&flow->flow);
	return program;
}

static void fold(struct sock *sk, struct refabric_flow *flow, u64 mss, u64 now_ns)
{
	bool silent = flow->fallen_back || refabric_is_silent(now_ns);
	const struct ccp_program *program = changed(flow, now_ns / 1000);

	if (ccp_fold(&flow->flow, program, tcp_sk(sk), mss, now_ns / 1000, refabric_report_us(), silent,
		     &refabric_activity)) {
		refabric_tell(flow, MEASURED, mss, now_ns);
		ccp_reported(&flow->flow, program);
	}
	use(sk, flow, mss);
}

static void set(struct refabric_flow *flow, const struct refabric_command *command, u64 mss)
{
	int i;

	if (command->parts & SETS_PROGRAM)
		ccp_stage_program(&flow->flow, command->program);
	for (i = 0; i < CCP_FIELDS; i++)
		if (command->controls_set & BIT(i))
			ccp_stage_control(&flow->flow, i, command->controls[i]);
	if (command->parts & FALLS_BACK)
		flow->fallen_back = true;
	if (flow->fallen_back)
		return;
	if (command->parts & SETS_WINDOW)
		ccp_command_window(&flow->flow, command->window, mss);
	if (command->parts & SETS_RATE)
		flow->flow.rate = command->rate;
}

/* Send what the new window allows, as after an acknowledgement. */
static void push(struct sock *sk)
{
	if ((1 << sk->sk_state) &
	    (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_CLOSING | TCPF_CLOSE_WAIT | TCPF_LAST_ACK))
		tcp_push_pending_frames(sk);
}

bool refabric_obey(const struct refabric_command *command)
{
	struct refabric_flow *flow = flow_of(command->flow);
	bool is_free = true;
	struct sock *sk;

	if (!flow)
		return true;
	sk = flow->sk;
	bh_lock_sock(sk);
	if (sock_owned_by_user(sk)) {
		is_free = false;
	} else {
		set(flow, command, mss_of(sk));
		refabric_activity.commands++;
		if (!flow->fallen_back) {
			use(sk, flow, mss_of(sk));
			push(sk);
		}
	}
	bh_unlock_sock(sk);
	return is_free;
}

static void start(struct sock *sk)
{
	*place_of(sk) = NULL;
	/* With cong_control the kernel does not set it. */
	sk->sk_pacing_rate = ccp_usual_rate(tcp_sk(sk), mss_of(sk));
}

static void end(struct sock *sk)
{
	struct refabric_flow *flow = *place_of(sk);

	if (!flow)
		return;
	*place_of(sk) = NULL;
	refabric_tell(flow, CLOSED, 0, ktime_get_ns());
	local_bh_disable();
	hash_del(&flow->node);
	local_bh_enable();
	kfree(flow);
}

static void every_ack(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
{
	u64 mss = mss_of(sk), now_ns = ktime_get_ns();
	struct refabric_flow *flow = begun(sk, mss, now_ns);

	refabric_count_ack(sk);
	if (!flow)
		return;
	ccp_measure(&flow->flow, &flow->last, tcp_sk(sk), rs, mss);
	fold(sk, flow, mss, now_ns);
}

static void state_changes(struct sock *sk, u8 to)
{
	struct refabric_flow *flow = *place_of(sk);
	u64 mss = mss_of(sk);

	if (to != LOSS_STATE || !flow)
		return;
	ccp_measure_timeout(&flow->flow, mss);
	fold(sk, flow, mss, ktime_get_ns());
}

static u32 segments(struct sock *sk)
{
	return 2;
}

static u32 cut(struct sock *sk)
{
	refabric_count_loss(sk);
	return clipped(tcp_snd_cwnd(tcp_sk(sk)) / 2, 2, MAX_WINDOW);
}

static u32 undo(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static struct refabric_control control = {
	.ops = {
		.init = start,
		.release = end,
		.cong_control = every_ack,
		.set_state = state_changes,
		.min_tso_segs = segments,
		.ssthresh = cut,
		.undo_cwnd = undo,
		.name = "rf_ccp",
		.owner = THIS_MODULE,
		.flags = TCP_CONG_NON_RESTRICTED,
	},
};

static int __init refabric_ccp(void)
{
	return refabric_register(&control);
}
late_initcall(refabric_ccp);
