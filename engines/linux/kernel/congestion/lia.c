// SPDX-License-Identifier: GPL-2.0
/* LIA: RFC 6356. */
#include "coupled.h"

static s64 per_ack(struct sock *sk, const struct paths *all, const struct rf_path *self)
{
	return (s64)lia_per_ack(all, self);
}

COUPLED("rf_lia", per_ack, tcp_reno_ssthresh);
