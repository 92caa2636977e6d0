// OLIA: Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control-05.
#include "coupled.h"

static __always_inline void look_at(void *sets, const struct rf_path *path) {
    olia_look(sets, path);
}

static __always_inline void count_in(void *sets, const struct rf_path *path) {
    olia_count(sets, path);
}

// The sets need two passes: the first finds the best values, the second counts the paths that have them.
static __always_inline s64 per_ack(struct tcp_sock *tp, const struct paths *all, const struct rf_path *self) {
    struct olia sets = {unknown_zero, unknown_zero, unknown_zero, unknown_zero, unknown_zero};
    each_subflow(tp, look_at, &sets);
    each_subflow(tp, count_in, &sets);
    return olia_per_ack(all, &sets, self);
}

COUPLED(.name = "rf_olia", per_ack, halved);
