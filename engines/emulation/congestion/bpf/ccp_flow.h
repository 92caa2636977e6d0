// What the datapaths of both kernels have in common: that of BPF (ccp.bpf.c), and the one compiled into the kernel of
// the guests (engines/linux/kernel/congestion/ccp.c). Structures of the kernel have the same members in both.
#ifndef REFABRIC_CCP_FLOW_H
#define REFABRIC_CCP_FLOW_H

enum { HEARTBEAT_LIMIT_NS = 200000000, LOSS_STATE = 4 };
enum { CREATED, MEASURED, CLOSED };

struct ccp_event {
    u32 kind, flow, mss, program;
    u32 source, destination;
    u64 at_ns, window;
    u64 fields[CCP_FIELDS];
};

struct ccp_activity {
    u64 folded, reports, unreported, commands, errors, fallbacks;
};

// Counts at a flow's last acknowledgement.
struct ccp_last {
    u64 bytes_acked;
    u32 delivered_ce, sacked;
};

CCP_INLINE u64 ccp_per_second(u64 bytes, u64 interval_us) {
    return interval_us ? bytes * 1000000 / interval_us : 0;
}

// Set the primitives of an acknowledgement.
CCP_INLINE void ccp_measure(struct ccp_flow *flow, struct ccp_last *last, const struct tcp_sock *tp,
                            const struct rate_sample *rs, u64 mss) {
    u64 *of = &flow->registers[CCP_PRIMITIVE];
    u64 delivered = rs->delivered > 0 ? rs->delivered : 0;
    u32 sacked = tp->sacked_out, newly_sacked = sacked > last->sacked ? sacked - last->sacked : 0;
    u32 in_flight = tp->packets_out - (sacked + tp->lost_out) + tp->retrans_out, acked = rs->acked_sacked;
    of[CCP_BYTES_ACKED] = tp->bytes_acked - last->bytes_acked;
    of[CCP_BYTES_MISORDERED] = newly_sacked * mss;
    of[CCP_ECN_PACKETS] = tp->delivered_ce - last->delivered_ce;
    of[CCP_ECN_BYTES] = of[CCP_ECN_PACKETS] * mss;
    of[CCP_LOST_PACKETS] = rs->losses > 0 ? rs->losses : 0;
    of[CCP_PACKETS_ACKED] = acked > newly_sacked ? acked - newly_sacked : 0;
    of[CCP_PACKETS_MISORDERED] = newly_sacked;
    of[CCP_BYTES_IN_FLIGHT] = in_flight * mss;
    of[CCP_BYTES_PENDING] = tp->write_seq - tp->snd_una;
    of[CCP_PACKETS_IN_FLIGHT] = in_flight;
    of[CCP_RATE_INCOMING] = ccp_per_second(delivered * mss, rs->rcv_interval_us);
    of[CCP_RATE_OUTGOING] = ccp_per_second(delivered * mss, rs->snd_interval_us);
    of[CCP_RTT_SAMPLE] = rs->rtt_us > 0 ? rs->rtt_us : CCP_NO_RTT;
    of[CCP_WAS_TIMEOUT] = 0;
    last->bytes_acked = tp->bytes_acked;
    last->delivered_ce = tp->delivered_ce;
    last->sacked = sacked;
}

// Set the primitives of a timeout, which no acknowledgement comes with, and the window that it leaves.
CCP_INLINE void ccp_measure_timeout(struct ccp_flow *flow, u64 mss) {
    u64 *of = &flow->registers[CCP_PRIMITIVE];
    for (int i = 0; i < CCP_FIELDS; i++)
        of[i] = 0;
    of[CCP_RTT_SAMPLE] = CCP_NO_RTT;
    of[CCP_WAS_TIMEOUT] = 1;
    ccp_timed_out(flow, mss);
}

// Run the program for the primitives that are set. `report_us` is the time between reports that the run asks for, 0
// for a round trip. Return whether to report.
CCP_INLINE int ccp_fold(struct ccp_flow *flow, const struct ccp_program *program, const struct tcp_sock *tp, u64 mss,
                        u64 now_us, u64 report_us, int silent, struct ccp_activity *count) {
    u64 *of = &flow->registers[CCP_PRIMITIVE], errors = flow->errors;
    of[CCP_NOW] = now_us;
    of[CCP_REPORT_US] = report_us ? report_us : of[CCP_RTT_SAMPLE];
    count->folded++;
    count->fallbacks += silent;
    int report = ccp_acknowledged(flow, program, mss, now_us, tp->srtt_us >> 3, silent);
    count->errors += flow->errors - errors;
    count->reports += report;
    return report;
}

CCP_INLINE int ccp_is_late(u64 now_ns, u64 beat_ns) {
    return now_ns > beat_ns && now_ns - beat_ns > HEARTBEAT_LIMIT_NS;
}

// The window in packets, and the pacing rate in bytes per second, that the kernel is to use.
CCP_INLINE u32 ccp_packets(const struct ccp_flow *flow, u64 mss) {
    return clipped(flow->window / mss, 1, CCP_MAX_PACKETS);
}

// The kernel's rate for controls that set none: twice the window per round trip below half of ssthresh, else 1.2 times
// (net/ipv4/tcp_input.c, tcp_update_pacing_rate). TCP sizes its bursts by it, and MPTCP chooses a subflow by it.
CCP_INLINE u64 ccp_usual_rate(const struct tcp_sock *tp, u64 mss) {
    u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
    u64 packets = tp->snd_cwnd > tp->packets_out ? tp->snd_cwnd : tp->packets_out;
    u64 eighths = tp->srtt_us ? tp->srtt_us : 1;
    return packets * mss * percent * (8 * 1000000 / 100) / eighths;
}

CCP_INLINE u64 ccp_pacing_rate(const struct ccp_flow *flow, const struct tcp_sock *tp, u64 mss) {
    return flow->rate ? flow->rate : ccp_usual_rate(tp, mss);
}

#endif
