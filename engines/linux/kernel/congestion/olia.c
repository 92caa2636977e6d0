// SPDX-License-Identifier: GPL-2.0
/* OLIA: Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control-05. */
#include "coupled.h"

static void look_at(void *sets, const struct rf_path *path)
{
	olia_look(sets, path);
}

static void count_in(void *sets, const struct rf_path *path)
{
	olia_count(sets, path);
}

/* The sets need two passes: the first finds the best values, the second counts the paths that have them. */
static s64 per_ack(struct sock *sk, const struct paths *all, const struct rf_path *self)
{
	struct olia sets = {};

	each_subflow(sk, look_at, &sets);
	each_subflow(sk, count_in, &sets);
	return olia_per_ack(all, &sets, self);
}

COUPLED("rf_olia", per_ack, tcp_reno_ssthresh);
