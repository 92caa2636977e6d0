// SPDX-License-Identifier: GPL-2.0
/* DCTCP: RFC 8257, for plain TCP and for each MPTCP subflow separately. Both ends must run it: the receiver
 * reports exactly which packets were marked (section 3.2), the sender reacts to their fraction (3.3).
 */
#include "controls.h"

struct memory {
	u32 alpha;         /* fraction of packets marked, in 2^-20 */
	u32 window_end;    /* sequence number at which the current observation window ends (3.3) */
	u32 delivered;     /* the kernel's counts at the start of the window */
	u32 delivered_ce;
	u32 rcv_nxt;       /* receiver: sequence number after the last packet */
	u32 ce;            /* receiver: whether that packet was marked (DCTCP.CE) */
	u32 window_before; /* at the last loss */
};

static struct memory *memory_of(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct memory) > ICSK_CA_PRIV_SIZE);
	return inet_csk_ca(sk);
}

static void observe_from_here(struct sock *sk)
{
	struct memory *memory = memory_of(sk);

	memory->window_end = tcp_sk(sk)->snd_nxt;
	memory->delivered = tcp_sk(sk)->delivered;
	memory->delivered_ce = tcp_sk(sk)->delivered_ce;
}

static void start(struct sock *sk)
{
	struct memory *memory = memory_of(sk);

	memory->alpha = 1U << 20; /* the initial value of section 3.3: react fully until marks are counted */
	memory->rcv_nxt = tcp_sk(sk)->rcv_nxt;
	memory->ce = 0;
	memory->window_before = 0;
	observe_from_here(sk);
}

static void every_ack(struct sock *sk, u32 flags)
{
	struct memory *memory = memory_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	refabric_count_ack(sk);
	if (before(tp->snd_una, memory->window_end))
		return;
	memory->alpha = dctcp_alpha(memory->alpha, tp->delivered - memory->delivered,
				    tp->delivered_ce - memory->delivered_ce);
	observe_from_here(sk);
}

static u32 cut(struct sock *sk)
{
	struct memory *memory = memory_of(sk);

	memory->window_before = tcp_snd_cwnd(tcp_sk(sk));
	refabric_count_loss(sk);
	return dctcp_after_marks(memory->window_before, memory->alpha);
}

/* A loss reduces the window as reno does, independent of alpha (3.5). The kernel has called cut() before. */
static void halve(struct sock *sk)
{
	u32 window = tcp_snd_cwnd(tcp_sk(sk));

	memory_of(sk)->window_before = window;
	tcp_sk(sk)->snd_ssthresh = clipped(window / 2, 2, MAX_WINDOW);
}

static void state(struct sock *sk, u8 state)
{
	if (state == TCP_CA_Recovery && inet_csk(sk)->icsk_ca_state != TCP_CA_Recovery)
		halve(sk);
}

static void echo(struct tcp_sock *tp, u32 ce)
{
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* Receiver: a delayed ACK must not cover marked and unmarked packets together (3.2). When the mark changes, send
 * the pending ACK with the old echo for the old packets; later ACKs have the new echo.
 */
static void mark_changes(struct sock *sk, u32 ce)
{
	struct memory *memory = memory_of(sk);

	if (memory->ce != ce) {
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			echo(tcp_sk(sk), memory->ce);
			__tcp_send_ack(sk, memory->rcv_nxt, 0);
		}
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	memory->rcv_nxt = tcp_sk(sk)->rcv_nxt;
	memory->ce = ce;
	echo(tcp_sk(sk), ce);
}

static void event(struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_ECN_IS_CE)
		mark_changes(sk, 1);
	else if (event == CA_EVENT_ECN_NO_CE)
		mark_changes(sk, 0);
	else if (event == CA_EVENT_LOSS)
		halve(sk);
}

static u32 undo(struct sock *sk)
{
	return max(memory_of(sk)->window_before, tcp_snd_cwnd(tcp_sk(sk)));
}

static struct refabric_control control = {
	.ops = {
		.init = start,
		.ssthresh = cut,
		.cong_avoid = tcp_reno_cong_avoid,
		.set_state = state,
		.cwnd_event = event,
		.in_ack_event = every_ack,
		.undo_cwnd = undo,
		.name = "rf_dctcp",
		.owner = THIS_MODULE,
		.flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
	},
};

static int __init refabric_dctcp(void)
{
	return refabric_register(&control);
}
late_initcall(refabric_dctcp);
