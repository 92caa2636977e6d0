// Stamps its flow's rank on every segment that leaves a host, in the IPv4 identification field. The fabric reads it
// there (rank_of in fabric/realtime/frame.hpp). Retransmissions get the rank of now, like any other segment.
#include "packets.h"

#define UNKNOWN 0xffffU
#define LARGEST 0xfffffffeU

// As FlowSize in fabric/host_io/traffic_sockets.hpp, which writes it.
struct flow_size {
    __u64 size_bytes;
    __u64 by_sent;
};

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct flow_size);
} sizes SEC(".maps");

struct counts {
    __u64 stamped;
    __u64 unknown;    // segments of flows without a size
    __u64 several;    // frames of several segments, which one stamp cannot serve
};

COUNTERS(struct counts);

// A number of 16 bits that grows with the rank: 5 bits of exponent and 11 of mantissa, rounded down.
static __always_inline __u16 stamp_of(__u32 rank) {
    __u32 exponent = 0;
#pragma unroll
    for (int i = 0; i < 21; i++)
        if (rank >= 4096) {
            rank >>= 1;
            exponent++;
        }
    return rank < 2048 ? rank : (__u16)((exponent + 1) << 11 | (rank - 2048));
}

static __always_inline __u32 rank_of(const struct flow_size *flow, const struct bpf_tcp_sock *tcp) {
    __u64 acked = tcp->bytes_acked - 1;  // the SYN is counted
    __u64 bytes = acked + (__u32)(tcp->snd_nxt - tcp->snd_una);
    if (!flow->by_sent) {
        if (!flow->size_bytes)
            return LARGEST;
        bytes = flow->size_bytes > acked ? flow->size_bytes - acked : 0;
    }
    return bytes < LARGEST ? bytes : LARGEST;
}

// The stamp of a sender's segment: all ones if the size of its flow is unknown.
static __always_inline __u16 stamp_by(struct bpf_sock *of) {
    if (!of)
        return UNKNOWN;
    struct bpf_sock *sk = bpf_sk_fullsock(of);
    if (!sk)
        return UNKNOWN;
    struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);
    struct flow_size *flow = bpf_sk_storage_get(&sizes, sk, 0, 0);
    return tcp && flow ? stamp_of(rank_of(flow, tcp)) : UNKNOWN;
}

SEC("tc")
int stamp(struct __sk_buff *skb) {
    struct segment segment;
    __u32 zero = 0;
    struct counts *here = bpf_map_lookup_elem(&counters, &zero);
    if (!here || !read_segment(skb, &segment) || !segment.bytes)
        return CARRY_ON;
    __u16 stamp = stamp_by(skb->sk), before, after = bpf_htons(stamp);
    if (stamp == UNKNOWN)
        here->unknown++;
    if (skb->gso_segs > 1)
        here->several++;
    if (bpf_skb_load_bytes(skb, IP_ID, &before, sizeof before))
        return CARRY_ON;
    bpf_skb_store_bytes(skb, IP_ID, &after, sizeof after, 0);
    bpf_l3_csum_replace(skb, IP_CHECKSUM, before, after, sizeof after);
    here->stamped++;
    return CARRY_ON;
}
