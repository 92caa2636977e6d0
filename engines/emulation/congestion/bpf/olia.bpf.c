// OLIA: Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control-05.
#include "coupled.h"

// The sets need two rounds: what is best, then how many are.
static __always_inline struct olia sets_of(struct tcp_sock *tp) {
    struct olia sets = {unknown_zero, unknown_zero, unknown_zero, unknown_zero, unknown_zero};
    struct bpf_iter_num turn;
    struct walk walk = subflows_of(tp);
    bpf_iter_num_new(&turn, 0, MOST_PATHS);
    while (bpf_iter_num_next(&turn)) {
        struct tcp_sock *other = next_subflow(&walk);
        if (!other)
            break;
        if (!is_up(other))
            continue;
        struct path path = path_from(other);
        olia_look(&sets, &path);
    }
    bpf_iter_num_destroy(&turn);
    walk = subflows_of(tp);
    bpf_iter_num_new(&turn, 0, MOST_PATHS);
    while (bpf_iter_num_next(&turn)) {
        struct tcp_sock *other = next_subflow(&walk);
        if (!other)
            break;
        if (!is_up(other))
            continue;
        struct path path = path_from(other);
        olia_count(&sets, &path);
    }
    bpf_iter_num_destroy(&turn);
    return sets;
}

SEC("struct_ops/cong_avoid")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) {
    struct tcp_sock *tp = tcp_of(sk);
    acked = to_avoid_with(tp, acked);
    if (!acked)
        return;
    struct paths all = paths_of(tp);
    struct path self = path_from(tp);
    if (all.count > 1) {
        struct olia sets = sets_of(tp);
        grow(tp, olia_per_ack(&all, &sets, &self), acked);
    } else {
        tcp_reno_cong_avoid(sk, ack, acked);
    }
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(halve, struct sock *sk) {
    remember_loss(tcp_of(sk));
    return tcp_reno_ssthresh(sk);
}

SEC(".struct_ops")
struct tcp_congestion_ops ops = {
    .init = (void *)start,
    .ssthresh = (void *)halve,
    .cong_avoid = (void *)avoid,
    .set_state = (void *)state,
    .in_ack_event = (void *)every_ack,
    .undo_cwnd = (void *)undo,
    .name = "rf_olia",
    .flags = TCP_CONG_NON_RESTRICTED,
};
