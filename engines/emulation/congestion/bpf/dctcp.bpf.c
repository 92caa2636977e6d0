// DCTCP: RFC 8257, for plain TCP and for each MPTCP subflow separately. Both ends must run it: the receiver
// reports exactly which packets were marked (section 3.2), the sender reacts to their fraction (3.3).
#include "counted.h"

struct memory {
    u32 alpha;          // fraction of packets marked, in 2^-20
    u32 window_end;     // sequence number at which the current observation window ends (3.3)
    u32 delivered;      // the kernel's counts at the start of the window
    u32 delivered_ce;
    u32 rcv_nxt;        // receiver: sequence number after the last packet
    u32 ce;             // receiver: whether that packet was marked (DCTCP.CE)
    u32 window_before;  // at the last loss
    struct seen seen;   // state of the guard
};

enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16, TCP_ECN_DEMAND_CWR = 4 };

static __always_inline struct memory *memory_of(struct tcp_sock *tp) {
    return (struct memory *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline void observe_from_here(struct tcp_sock *tp, struct memory *memory) {
    memory->window_end = tp->snd_nxt;
    memory->delivered = tp->delivered;
    memory->delivered_ce = tp->delivered_ce;
}

SEC("struct_ops/init")
void BPF_PROG(start, struct sock *sk) {
    if (!keep_or_leave(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    struct memory *memory = memory_of(tp);
    memory->alpha = 1U << 20;  // the initial value of section 3.3: react fully until marks are counted
    memory->rcv_nxt = tp->rcv_nxt;
    memory->ce = 0;
    memory->window_before = 0;
    memory->seen.window = memory->seen.largest = tp->snd_cwnd;
    memory->seen.repaired = 0;
    observe_from_here(tp, memory);
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(every_ack, struct sock *sk, __u32 flags) {
    if (!is_ours(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    struct memory *memory = memory_of(tp);
    guard(tp, &memory->seen);
    if ((s32)(tp->snd_una - memory->window_end) < 0)
        return;
    memory->alpha = dctcp_alpha(memory->alpha, tp->delivered - memory->delivered,
                                tp->delivered_ce - memory->delivered_ce);
    observe_from_here(tp, memory);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(cut, struct sock *sk) {
    if (!is_ours(sk))
        return tcp_reno_ssthresh(sk);
    struct tcp_sock *tp = tcp_of(sk);
    struct memory *memory = memory_of(tp);
    memory->window_before = tp->snd_cwnd;
    count_loss();
    return dctcp_after_marks(tp->snd_cwnd, memory->alpha);
}

// A loss reduces the window as reno does, independent of alpha (3.5). The kernel has called cut() before.
static __always_inline void halve(struct tcp_sock *tp) {
    memory_of(tp)->window_before = tp->snd_cwnd;
    tp->snd_ssthresh = clipped(tp->snd_cwnd / 2, 2, MAX_WINDOW);
}

SEC("struct_ops/set_state")
void BPF_PROG(state, struct sock *sk, __u8 state) {
    if (!is_ours(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    u32 before = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
    repair(tp, &memory_of(tp)->seen);
    if (state == TCP_CA_RECOVERY && before != TCP_CA_RECOVERY)
        halve(tp);
}

static __always_inline void echo(struct tcp_sock *tp, u32 ce) {
    if (ce)
        tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
    else
        tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

// Receiver: a delayed ACK must not cover marked and unmarked packets together (3.2). When the mark changes, send
// the pending ACK with the old echo for the old packets; later ACKs have the new echo.
static __always_inline void mark_changes(struct tcp_sock *tp, u32 ce) {
    struct memory *memory = memory_of(tp);
    if (memory->ce != ce) {
        if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
            echo(tp, memory->ce);
            bpf_tcp_send_ack(tp, memory->rcv_nxt);
        }
        tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
    }
    memory->rcv_nxt = tp->rcv_nxt;
    memory->ce = ce;
    echo(tp, ce);
}

SEC("struct_ops/cwnd_event")
void BPF_PROG(event, struct sock *sk, enum tcp_ca_event event) {
    if (!is_ours(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_ECN_IS_CE))
        mark_changes(tp, 1);
    else if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_ECN_NO_CE))
        mark_changes(tp, 0);
    else if (event == bpf_core_enum_value(enum tcp_ca_event, CA_EVENT_LOSS))
        halve(tp);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) {
    tcp_reno_cong_avoid(sk, ack, acked);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo, struct sock *sk) {
    if (!is_ours(sk))
        return tcp_reno_undo_cwnd(sk);
    struct tcp_sock *tp = tcp_of(sk);
    u32 before = memory_of(tp)->window_before;
    return before > tp->snd_cwnd ? before : tp->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops ops = {
    .init = (void *)start,
    .ssthresh = (void *)cut,
    .set_state = (void *)state,
    .cwnd_event = (void *)event,
    .cong_avoid = (void *)avoid,
    .in_ack_event = (void *)every_ack,
    .undo_cwnd = (void *)undo,
    .name = "rf_dctcp",
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
};
