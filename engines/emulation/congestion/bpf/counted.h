// Counters of a run, and the guard against callbacks that the kernel skipped (docs/congestion.md).
#ifndef REFABRIC_COUNTED_H
#define REFABRIC_COUNTED_H

#include "namespaces.h"

// Per CPU and not atomic: an increment may be lost to an interrupting softirq.
struct counts {
    u64 acks;
    u64 losses;   // calls of ssthresh
    u64 repairs;  // corrected impossible windows and thresholds
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct counts);
} counters SEC(".maps");

#define INFINITE_SSTHRESH 0x7fffffffU

static __always_inline struct counts *counts(void) {
    __u32 key = 0;
    return bpf_map_lookup_elem(&counters, &key);
}

static __always_inline void count_ack(void) {
    struct counts *here = counts();
    if (here)
        here->acks++;
}

static __always_inline void count_loss(void) {
    struct counts *here = counts();
    if (here)
        here->losses++;
}

static __always_inline void count_repair(void) {
    struct counts *here = counts();
    if (here)
        here->repairs++;
}

// State of the guard for a socket: the last valid window, the largest window, and whether it was repaired since
// the last valid one. During a burst every ACK finds too much in flight, which counts as one repair.
struct seen {
    u32 window;
    u32 largest;
    u32 repaired;
};

// An ACK at most doubles a window, and a threshold does not exceed the largest window unless it was never set.
// The constant allows for small windows.
static __always_inline bool is_impossible(u32 packets, const struct seen *seen) {
    return packets > clipped(2 * (u64)seen->largest + 64, 0, MAX_WINDOW) && packets != INFINITE_SSTHRESH;
}

// A window or threshold beyond these limits means that the kernel skipped a callback. Set it to half of the last
// valid window, as the callback would have done. Return whether that was necessary.
static __always_inline bool repair(struct tcp_sock *tp, struct seen *seen) {
    u32 half = clipped(seen->window / 2, 2, MAX_WINDOW);
    bool window = is_impossible(tp->snd_cwnd, seen);
    if (!window && !is_impossible(tp->snd_ssthresh, seen))
        return 0;
    tp->snd_ssthresh = half;
    if (window)
        tp->snd_cwnd = half;
    if (!seen->repaired)
        count_repair();
    seen->repaired = 1;
    return 1;
}

// Run before an ACK is processed.
static __always_inline void guard(struct tcp_sock *tp, struct seen *seen) {
    count_ack();
    if (repair(tp, seen))
        return;
    seen->repaired = 0;
    seen->window = tp->snd_cwnd;
    if (seen->window > seen->largest)
        seen->largest = seen->window;
}

#endif
