// BALIA: Peng, Walid, Hwang, Low, ToN 2016; draft-walid-mptcp-congestion-control-04.
#include "coupled.h"

static __always_inline s64 per_ack(struct tcp_sock *tp, const struct paths *all, const struct rf_path *self) {
    return (s64)balia_per_ack(all, self);
}

static __always_inline u32 after_loss(struct sock *sk) {
    struct tcp_sock *tp = tcp_of(sk);
    struct paths all = paths_of(tp);
    struct rf_path self = path_of(tp->snd_cwnd, tp->srtt_us, 0);
    return all.count > 1 ? balia_after_loss(&all, &self) : tcp_reno_ssthresh(sk);
}

COUPLED(.name = "rf_balia", per_ack, after_loss);
