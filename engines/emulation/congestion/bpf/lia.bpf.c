// LIA: RFC 6356.
#include "coupled.h"

SEC("struct_ops/cong_avoid")
void BPF_PROG(avoid, struct sock *sk, __u32 ack, __u32 acked) {
    struct tcp_sock *tp = tcp_of(sk);
    acked = to_avoid_with(tp, acked);
    if (!acked)
        return;
    struct paths all = paths_of(tp);
    struct path self = path_from(tp);
    if (all.count > 1)
        grow(tp, lia_per_ack(&all, &self), acked);
    else
        tcp_reno_cong_avoid(sk, ack, acked);
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
    .name = "rf_lia",
    .flags = TCP_CONG_NON_RESTRICTED,
};
