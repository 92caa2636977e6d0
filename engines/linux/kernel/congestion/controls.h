/* SPDX-License-Identifier: GPL-2.0 */
/* Congestion controls that are compiled into the kernel, and their counters. */
#ifndef REFABRIC_CONTROLS_H
#define REFABRIC_CONTROLS_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <net/inet_connection_sock.h>
#include <net/mptcp.h>
#include <net/tcp.h>

#include "arithmetic.h"

/* An algorithm with its counters over all sockets. */
struct refabric_control {
	struct tcp_congestion_ops ops;
	atomic64_t acks;
	atomic64_t losses; /* calls of ssthresh */
	struct list_head list;
};

/* Make the algorithm selectable, and show its counters in /proc/refabric/congestion. */
int refabric_register(struct refabric_control *control);

struct proc_ops;

/* Make a file of this name in /proc/refabric; without `ops`, a folder. */
int refabric_file(const char *name, umode_t mode, const struct proc_ops *ops);

static inline struct refabric_control *refabric_control_of(struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct refabric_control, ops);
}

static inline void refabric_count_ack(struct sock *sk)
{
	atomic64_inc(&refabric_control_of(sk)->acks);
}

static inline void refabric_count_loss(struct sock *sk)
{
	atomic64_inc(&refabric_control_of(sk)->losses);
}

#endif
