/* SPDX-License-Identifier: GPL-2.0 */
/* The datapath under an agent in two halves: the congestion control (ccp.c) and its conversation with the agent
 * (ccp_agent.c), a program of the guest.
 */
#ifndef REFABRIC_CCP_H
#define REFABRIC_CCP_H

#include "controls.h"
#include "datapath.h"

#include "ccp_flow.h"

/* A flow under the agent; its address is the socket's private memory of congestion controls. */
struct refabric_flow {
	struct ccp_flow flow;
	struct ccp_last last;
	u32 number;
	bool fallen_back;
	struct sock *sk;
	struct hlist_node node;
};

/* What the agent sets for a flow, from `due_ns` on (CLOCK_MONOTONIC). Commands are written in the order of this time. */
struct refabric_command {
	u64 due_ns;
	u32 flow;
	u32 parts;
	u64 window, rate;
	u32 program;
	u32 controls_set; /* bit i: controls[i] is set */
	u64 controls[CCP_FIELDS];
};
enum { SETS_WINDOW = 1, SETS_RATE = 2, FALLS_BACK = 4, SETS_PROGRAM = 8 };

extern struct ccp_program refabric_programs[CCP_PROGRAMS];
extern struct ccp_activity refabric_activity;

/* Return the time between reports that the agent asks for, in us; 0 for a round trip. */
u64 refabric_report_us(void);

/* Return whether there is no agent, or one that is silent for too long. */
bool refabric_is_silent(u64 now_ns);

/* Let the agent know of an event of a flow. */
void refabric_tell(const struct refabric_flow *flow, u32 kind, u32 mss, u64 now_ns);

/* Carry out a command whose time has come. Return false while a program holds the flow's socket. */
bool refabric_obey(const struct refabric_command *command);

#endif
