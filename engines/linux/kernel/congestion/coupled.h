/* SPDX-License-Identifier: GPL-2.0 */
/* State that a subflow reads from its siblings, and the common parts of all coupled algorithms.
 *
 * Siblings are read without their locks. This kernel has one CPU and no preemption, so nothing changes a
 * connection's list while it is walked, and a sibling's numbers are whole words. The arithmetic is the one that
 * the BPF versions are compiled from (engines/emulation/congestion/bpf).
 */
#ifndef REFABRIC_COUPLED_H
#define REFABRIC_COUPLED_H

#include "../mptcp/protocol.h"
#include "controls.h"

/* State of a subflow, in the kernel's memory for congestion controls (icsk_ca_priv). */
struct memory {
	s64 credit;            /* fraction of the next whole packet, in 2^-32 */
	u64 acked_at_loss;     /* bytes acknowledged when the last loss was found, */
	u64 acked_at_previous; /* and at the one before */
};

static inline struct memory *memory_of(struct sock *sk)
{
	BUILD_BUG_ON(sizeof(struct memory) > ICSK_CA_PRIV_SIZE);
	return inet_csk_ca(sk);
}

/* In recovery the window shrinks step by step to ssthresh, so ssthresh counts (RFC 6356, 3). */
static inline u32 window_of(struct sock *sk)
{
	u8 state = inet_csk(sk)->icsk_ca_state;

	return state == TCP_CA_CWR || state == TCP_CA_Recovery ? tcp_sk(sk)->snd_ssthresh : tcp_snd_cwnd(tcp_sk(sk));
}

static inline u64 between_losses(struct sock *sk)
{
	struct memory *memory = memory_of(sk);
	u64 since = tcp_sk(sk)->bytes_acked - memory->acked_at_loss;
	u64 before = memory->acked_at_loss - memory->acked_at_previous;
	u32 mss = tcp_sk(sk)->mss_cache;

	return div_u64(since > before ? since : before, mss ? mss : 1);
}

static inline struct rf_path path_from(struct sock *sk)
{
	return path_of(window_of(sk), tcp_sk(sk)->srtt_us, between_losses(sk));
}

/* Return whether a subflow can carry data and has an RTT: not while it is being opened or closed. */
static inline bool is_up(struct sock *sk)
{
	return ((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT)) && tcp_sk(sk)->srtt_us;
}

/* Call `look` with every established subflow of an MPTCP connection and with `into`. */
static inline void each_subflow(struct sock *sk, void (*look)(void *into, const struct rf_path *path), void *into)
{
	struct mptcp_subflow_context *own = mptcp_subflow_ctx(sk), *subflow;
	int turn = 0;

	if (!own || !own->conn)
		return;
	mptcp_for_each_subflow(mptcp_sk(own->conn), subflow) {
		struct sock *other = mptcp_subflow_tcp_sock(subflow);
		struct rf_path path;

		if (turn++ == MAX_PATHS)
			break;
		if (!other || !is_up(other))
			continue;
		path = path_from(other);
		look(into, &path);
	}
}

static inline void add_to(void *all, const struct rf_path *path)
{
	add(all, path);
}

/* Return sums over all subflows of the connection; the count is 0 for plain TCP. */
static inline struct paths paths_of(struct sock *sk)
{
	struct paths all = {};

	if (sk_is_mptcp(sk))
		each_subflow(sk, add_to, &all);
	return all;
}

static inline void grow(struct sock *sk, s64 per_ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s64 window = (s64)tcp_snd_cwnd(tp) + whole_packets(&memory_of(sk)->credit, per_ack, acked);

	tcp_snd_cwnd_set(tp, clipped(window < 1 ? 1 : (u64)window, 1, tp->snd_cwnd_clamp));
}

static inline void remember_loss(struct sock *sk)
{
	struct memory *memory = memory_of(sk);

	memory->credit = 0;
	memory->acked_at_previous = memory->acked_at_loss;
	memory->acked_at_loss = tcp_sk(sk)->bytes_acked;
	refabric_count_loss(sk);
}

/* Return the acknowledged packets that count for congestion avoidance: 0 if the window does not limit sending,
 * or if all were used in slow start, which the kernel does.
 */
static inline u32 to_avoid_with(struct sock *sk, u32 acked)
{
	if (!tcp_is_cwnd_limited(sk))
		return 0;
	return tcp_in_slow_start(tcp_sk(sk)) ? tcp_slow_start(tcp_sk(sk), acked) : acked;
}

static inline void coupled_start(struct sock *sk)
{
	struct memory *memory = memory_of(sk);

	memory->credit = 0;
	memory->acked_at_loss = memory->acked_at_previous = tcp_sk(sk)->bytes_acked;
}

static inline void coupled_ack(struct sock *sk, u32 flags)
{
	refabric_count_ack(sk);
}

/* Define a whole algorithm. NAME is the kernel's name. PER_ACK(sk, all, self) is the increase of its window per
 * acknowledged packet, in 2^-32 packets. AFTER_LOSS(sk) is the window after a loss. Single subflows and plain
 * TCP use the kernel's reno.
 */
#define COUPLED(NAME, PER_ACK, AFTER_LOSS)                                                     \
	static void avoid(struct sock *sk, u32 ack, u32 acked)                                 \
	{                                                                                      \
		struct rf_path self;                                                           \
		struct paths all;                                                              \
                                                                                               \
		acked = to_avoid_with(sk, acked);                                              \
		if (!acked)                                                                    \
			return;                                                                \
		all = paths_of(sk);                                                            \
		self = path_from(sk);                                                          \
		if (all.count > 1)                                                             \
			grow(sk, PER_ACK(sk, &all, &self), acked);                             \
		else                                                                           \
			tcp_reno_cong_avoid(sk, ack, acked);                                   \
	}                                                                                      \
                                                                                               \
	static u32 cut(struct sock *sk)                                                        \
	{                                                                                      \
		remember_loss(sk);                                                             \
		return AFTER_LOSS(sk);                                                         \
	}                                                                                      \
                                                                                               \
	static struct refabric_control control = {                                             \
		.ops = {                                                                       \
			.init = coupled_start,                                                 \
			.ssthresh = cut,                                                       \
			.cong_avoid = avoid,                                                   \
			.in_ack_event = coupled_ack,                                           \
			.undo_cwnd = tcp_reno_undo_cwnd,                                       \
			.name = NAME,                                                          \
			.owner = THIS_MODULE,                                                  \
			.flags = TCP_CONG_NON_RESTRICTED,                                      \
		},                                                                             \
	};                                                                                     \
                                                                                               \
	static int __init refabric_coupled(void)                                               \
	{                                                                                      \
		return refabric_register(&control);                                            \
	}                                                                                      \
	late_initcall(refabric_coupled)

#endif
