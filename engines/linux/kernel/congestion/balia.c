// SPDX-License-Identifier: GPL-2.0
/* BALIA: Peng, Walid, Hwang, Low, ToN 2016; draft-walid-mptcp-congestion-control-04. */
#include "coupled.h"

static s64 per_ack(struct sock *sk, const struct paths *all, const struct rf_path *self)
{
	return (s64)balia_per_ack(all, self);
}

static u32 after_loss(struct sock *sk)
{
	struct paths all = paths_of(sk);
	struct rf_path self = path_of(tcp_snd_cwnd(tcp_sk(sk)), tcp_sk(sk)->srtt_us, 0);

	return all.count > 1 ? balia_after_loss(&all, &self) : tcp_reno_ssthresh(sk);
}

COUPLED("rf_balia", per_ack, after_loss);
