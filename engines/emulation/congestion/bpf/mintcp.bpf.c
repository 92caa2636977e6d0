// minTCP's window (Alizadeh et al., pFabric, SIGCOMM 2013, section 4.3): reno's, with an upper limit, and no reduction
// is ever undone. Another program makes it learn of losses by timeouts alone (hide_sacks.bpf.c).
#include "counted.h"

struct memory {
    struct seen seen;  // state of the guard
};

// The first element is the largest window in packets; 0 for no limit.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} settings SEC(".maps");

static __always_inline struct memory *memory_of(struct tcp_sock *tp) {
    return (struct memory *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline u32 max_window(void) {
    __u32 key = 0;
    u64 *found = bpf_map_lookup_elem(&settings, &key);
    return mintcp_limit(found ? *found : 0);
}

SEC("struct_ops/init")
void BPF_PROG(start, struct sock *sk) {
    if (!keep_or_leave(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    struct memory *memory = memory_of(tp);
    memory->seen.window = memory->seen.largest = tp->snd_cwnd;
    memory->seen.repaired = 0;
}

SEC("struct_ops/in_ack_event")
void BPF_PROG(every_ack, struct sock *sk, __u32 flags) {
    if (!is_ours(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    guard(tp, &memory_of(tp)->seen);
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(cut, struct sock *sk) {
    if (!is_ours(sk))
        return tcp_reno_ssthresh(sk);
    struct tcp_sock *tp = tcp_of(sk);
    count_loss();
    return mintcp_after_loss(tp->snd_cwnd);
}

SEC("struct_ops/set_state")
void BPF_PROG(state, struct sock *sk, __u8 state) {
    if (!is_ours(sk))
        return;
    struct tcp_sock *tp = tcp_of(sk);
    repair(tp, &memory_of(tp)->seen);
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) {
    struct tcp_sock *tp = tcp_of(sk);
    u32 most = max_window();
    if (!is_ours(sk)) {
        tcp_reno_cong_avoid(sk, ack, acked);
        return;
    }
    if (tp->snd_cwnd < most)
        tcp_reno_cong_avoid(sk, ack, acked);
    if (tp->snd_cwnd > most)
        tp->snd_cwnd = most;
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo, struct sock *sk) {
    return is_ours(sk) ? tcp_of(sk)->snd_cwnd : tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops ops = {
    .init = (void *)start,
    .ssthresh = (void *)cut,
    .set_state = (void *)state,
    .cong_avoid = (void *)avoid,
    .in_ack_event = (void *)every_ack,
    .undo_cwnd = (void *)undo,
    .name = "rf_mintcp",
    .flags = TCP_CONG_NON_RESTRICTED,
};
