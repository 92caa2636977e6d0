// LIA: RFC 6356.
#include "coupled.h"

static __always_inline s64 per_ack(struct tcp_sock *tp, const struct paths *all, const struct rf_path *self) {
    return (s64)lia_per_ack(all, self);
}

COUPLED(.name = "rf_lia", per_ack, halved);
