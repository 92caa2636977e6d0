// Hides selective acknowledgements from a sender that has lost nothing so far. Without them duplicate acknowledgements
// mean nothing to it, so it learns of a loss by its timeout alone, as minTCP does. From then on it sees them and
// retransmits only what is missing.
#include "packets.h"

#define NOPS 0x01010101U
#define SACK 5
#define WORDS 10  // of options

struct counts {
    __u64 hidden;
    __u64 shown;
};

COUNTERS(struct counts);

// Return whether the sender is still without any known loss.
static __always_inline int is_open(struct __sk_buff *skb, const struct segment *segment) {
    struct bpf_sock_tuple tuple = {};
    if (bpf_skb_load_bytes(skb, ETHERNET + 12, &tuple.ipv4.saddr, 8) ||
        bpf_skb_load_bytes(skb, segment->tcp, &tuple.ipv4.sport, 4))
        return 0;
    struct bpf_sock *sk = bpf_skc_lookup_tcp(skb, &tuple, sizeof tuple.ipv4, BPF_F_CURRENT_NETNS, 0);
    if (!sk)
        return 0;
    struct bpf_tcp_sock *tcp = bpf_tcp_sock(sk);
    int open = tcp && tcp->icsk_retransmits == 0 && tcp->lost_out == 0 && tcp->retrans_out == 0;
    bpf_sk_release(sk);
    return open;
}

// Where Linux puts the option: after timestamps, if there are any, and two NOPs. 0 if there is none.
static __always_inline __u32 find_sack(struct __sk_buff *skb, const struct segment *segment) {
    __u8 kinds[4];
#pragma unroll
    for (__u32 skipped = 0; skipped <= 12; skipped += 12) {
        __u32 at = segment->options + skipped;
        if (at + 12 > segment->payload || bpf_skb_load_bytes(skb, at, kinds, sizeof kinds))
            return 0;
        if (kinds[0] == 1 && kinds[1] == 1 && kinds[2] == SACK)
            return at;
    }
    return 0;
}

SEC("tc")
int hide_sacks(struct __sk_buff *skb) {
    struct segment segment;
    __u32 zero = 0;
    struct counts *here = bpf_map_lookup_elem(&counters, &zero);
    if (!here || !read_segment(skb, &segment) || segment.bytes || segment.payload == segment.options)
        return CARRY_ON;
    __u32 at = find_sack(skb, &segment);
    if (!at)
        return CARRY_ON;
    if (!is_open(skb, &segment)) {
        here->shown++;
        return CARRY_ON;
    }
    for (int i = 0; i < WORDS && at + 4 <= segment.payload; i++, at += 4) {
        __u32 before, after = NOPS;
        if (bpf_skb_load_bytes(skb, at, &before, sizeof before))
            return CARRY_ON;
        bpf_l4_csum_replace(skb, segment.tcp + 16, before, after, sizeof after);
        bpf_skb_store_bytes(skb, at, &after, sizeof after, 0);
    }
    here->hidden++;
    return CARRY_ON;
}
