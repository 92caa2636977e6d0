// SPDX-License-Identifier: GPL-2.0
/* EWTCP: equally weighted TCP (Honda et al., PFLDNeT 2009; Wischik et al., NSDI 2011), weight 1/n^2 on the increase. */
#include "coupled.h"

static s64 per_ack(struct sock *sk, const struct paths *all, const struct rf_path *self)
{
	return (s64)ewtcp_per_ack(all, self);
}

COUPLED("rf_ewtcp", per_ack, tcp_reno_ssthresh);
