// State that a subflow reads from its siblings, and the common parts of all coupled algorithms.
//
// Siblings are read without their locks, while other CPUs may change them. This is safe. RCU, which the kernel
// holds around every callback, keeps the list's entries from being freed; `bpf_rdonly_cast` makes every read safe
// from faults, even through a stale pointer; and a bounded number of entries is read. Stale values do not matter:
// each number is one aligned word and at most one ACK old, and the algorithms average over round trips.
#ifndef REFABRIC_COUPLED_H
#define REFABRIC_COUPLED_H

#include "counted.h"

// State of a subflow, in the kernel's memory for congestion controls (icsk_ca_priv, initially zero).
struct memory {
    s64 credit;             // fraction of the next whole packet, in 2^-32
    u64 acked_at_loss;      // bytes acknowledged when the last loss was found,
    u64 acked_at_previous;  // and at the one before
    struct seen seen;       // state of the guard
};

// Hide a value from the verifier, which would otherwise treat every iteration of a loop as a separate case.
volatile u64 unknown_zero = 0;

static __always_inline struct memory *memory_of(struct tcp_sock *tp) {
    return (struct memory *)tp->inet_conn.icsk_ca_priv;
}

// In recovery the window shrinks step by step to ssthresh, so ssthresh counts (RFC 6356, 3).
static __always_inline u32 window_of(struct tcp_sock *tp) {
    u32 state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
    return state == TCP_CA_CWR || state == TCP_CA_RECOVERY ? tp->snd_ssthresh : tp->snd_cwnd;
}

static __always_inline u64 between_losses(struct tcp_sock *tp) {
    struct memory *memory = memory_of(tp);
    u64 since = tp->bytes_acked - memory->acked_at_loss;
    u64 before = memory->acked_at_loss - memory->acked_at_previous;
    u32 mss = tp->mss_cache;
    return (since > before ? since : before) / (mss ? mss : 1);
}

static __always_inline struct rf_path path_from(struct tcp_sock *tp) {
    struct rf_path path = path_of(window_of(tp), tp->srtt_us, between_losses(tp));
    path.window += unknown_zero;
    path.rtt += unknown_zero;
    path.between_losses += unknown_zero;
    return path;
}

// An iterator over a connection's list of subflows.
struct walk {
    struct list_head *next;
    struct list_head *head;
};

static __always_inline struct mptcp_subflow_context *subflow_at(void *context) {
    return bpf_rdonly_cast(context, bpf_core_type_id_kernel(struct mptcp_subflow_context));
}

static __always_inline struct walk subflows_of(struct tcp_sock *tp) {
    struct mptcp_subflow_context *own = subflow_at(tp->inet_conn.icsk_ulp_data);
    struct mptcp_sock *connection =
        bpf_rdonly_cast(own->conn, bpf_core_type_id_kernel(struct mptcp_sock));
    struct walk walk = {connection->conn_list.next, &connection->conn_list};
    return walk;
}

// Return the next subflow's socket, or null at the end.
static __always_inline struct tcp_sock *next_subflow(struct walk *walk) {
    if (!walk->next || walk->next == walk->head)
        return 0;
    struct mptcp_subflow_context *subflow =
        subflow_at((void *)walk->next - bpf_core_field_offset(struct mptcp_subflow_context, node));
    walk->next = subflow->node.next;
    return bpf_rdonly_cast(subflow->tcp_sock, bpf_core_type_id_kernel(struct tcp_sock));
}

// Return whether a subflow can carry data and has an RTT: not while it is being opened or closed.
static __always_inline bool is_up(struct tcp_sock *tp) {
    __u8 state = tp->inet_conn.icsk_inet.sk.__sk_common.skc_state;
    return (state == TCP_ESTABLISHED || state == TCP_CLOSE_WAIT) && tp->srtt_us;
}

// Call `look` with every established subflow of an MPTCP connection and with `into`.
static __always_inline void each_subflow(struct tcp_sock *tp, void (*look)(void *into, const struct rf_path *path),
                                         void *into) {
    struct walk walk = subflows_of(tp);
    struct bpf_iter_num turn;
    bpf_iter_num_new(&turn, 0, MAX_PATHS);
    while (bpf_iter_num_next(&turn)) {
        struct tcp_sock *other = next_subflow(&walk);
        if (!other)
            break;
        if (!is_up(other))
            continue;
        struct rf_path path = path_from(other);
        look(into, &path);
    }
    bpf_iter_num_destroy(&turn);
}

static __always_inline void add_to(void *all, const struct rf_path *path) {
    add(all, path);
}

// Return sums over all subflows of the connection; the count is 0 for plain TCP.
static __always_inline struct paths paths_of(struct tcp_sock *tp) {
    struct paths all = {unknown_zero, unknown_zero, unknown_zero, unknown_zero, unknown_zero, unknown_zero};
    if (tp->is_mptcp)
        each_subflow(tp, add_to, &all);
    return all;
}

static __always_inline bool in_slow_start(struct tcp_sock *tp) {
    return tp->snd_cwnd < tp->snd_ssthresh;
}

// Return whether the window limits sending (net/ipv4: tcp_is_cwnd_limited).
static __always_inline bool window_limits(struct tcp_sock *tp) {
    if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
        return 1;
    return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

// Return the acknowledged packets that count for congestion avoidance: 0 if the window does not limit sending,
// or if all were used in slow start, which the kernel does.
static __always_inline u32 to_avoid_with(struct tcp_sock *tp, u32 acked) {
    if (!window_limits(tp))
        return 0;
    return in_slow_start(tp) ? tcp_slow_start(tp, acked) : acked;
}

static __always_inline void grow(struct tcp_sock *tp, s64 per_ack, u32 acked) {
    struct memory *memory = memory_of(tp);
    s64 credit = memory->credit;
    s64 window = (s64)tp->snd_cwnd + whole_packets(&credit, per_ack, acked);
    memory->credit = credit;
    tp->snd_cwnd = clipped(window < 1 ? 1 : (u64)window, 1, tp->snd_cwnd_clamp);
}

static __always_inline void remember_loss(struct tcp_sock *tp) {
    struct memory *memory = memory_of(tp);
    memory->credit = 0;
    memory->acked_at_previous = memory->acked_at_loss;
    memory->acked_at_loss = tp->bytes_acked;
    count_loss();
}

SEC("struct_ops/init")
void BPF_PROG(start, struct sock *sk) {
    if (!keep_or_leave(sk))
        return;
    struct memory *memory = memory_of(tcp_of(sk));
    memory->credit = 0;
    memory->acked_at_loss = memory->acked_at_previous = tcp_of(sk)->bytes_acked;
    memory->seen.window = memory->seen.largest = tcp_of(sk)->snd_cwnd;
    memory->seen.repaired = 0;
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(every_ack, struct sock *sk, __u32 flags) {
    if (is_ours(sk))
        guard(tcp_of(sk), &memory_of(tcp_of(sk))->seen);
}

// The kernel changes the state right after it calls ssthresh and before it uses the value.
SEC("struct_ops/set_state")
void BPF_PROG(state, struct sock *sk, __u8 state) {
    if (is_ours(sk))
        repair(tcp_of(sk), &memory_of(tcp_of(sk))->seen);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo, struct sock *sk) {
    return tcp_reno_undo_cwnd(sk);
}

static __always_inline u32 halved(struct sock *sk) {
    return tcp_reno_ssthresh(sk);
}

// Define a whole algorithm. NAMED is `.name = ` and the kernel's name. PER_ACK(tp, all, self) is the increase of
// its window per acknowledged packet, in 2^-32 packets. AFTER_LOSS(sk) is the window after a loss. Single
// subflows and plain TCP use the kernel's reno.
#define COUPLED(NAMED, PER_ACK, AFTER_LOSS)                                       \
    SEC("struct_ops/cong_avoid")                                                  \
    void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) {               \
        struct tcp_sock *tp = tcp_of(sk);                                         \
        if (!is_ours(sk)) {                                                       \
            tcp_reno_cong_avoid(sk, ack, acked);                                  \
            return;                                                               \
        }                                                                         \
        acked = to_avoid_with(tp, acked);                                         \
        if (!acked)                                                               \
            return;                                                               \
        struct paths all = paths_of(tp);                                          \
        struct rf_path self = path_from(tp);                                         \
        if (all.count > 1)                                                        \
            grow(tp, PER_ACK(tp, &all, &self), acked);                            \
        else                                                                      \
            tcp_reno_cong_avoid(sk, ack, acked);                                  \
    }                                                                             \
                                                                                  \
    SEC("struct_ops/ssthresh")                                                    \
    __u32 BPF_PROG(cut, struct sock *sk) {                                        \
        if (!is_ours(sk))                                                         \
            return tcp_reno_ssthresh(sk);                                         \
        remember_loss(tcp_of(sk));                                                \
        return AFTER_LOSS(sk);                                                    \
    }                                                                             \
                                                                                  \
    SEC(".struct_ops")                                                            \
    struct tcp_congestion_ops ops = {                                             \
        .init = (void *)start,                                                    \
        .ssthresh = (void *)cut,                                                  \
        .cong_avoid = (void *)avoid,                                              \
        .set_state = (void *)state,                                               \
        .in_ack_event = (void *)every_ack,                                        \
        .undo_cwnd = (void *)undo,                                                \
        NAMED,                                                                    \
        .flags = TCP_CONG_NON_RESTRICTED,                                         \
    }

#endif
