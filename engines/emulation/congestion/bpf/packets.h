// TCP/IPv4 frames on a veth, as programs at its ends see them.
#ifndef REFABRIC_PACKETS_H
#define REFABRIC_PACKETS_H

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETHERNET 14
#define SHORTEST (ETHERNET + 20 + 20)
#define IPPROTO_TCP 6
#define CARRY_ON (-1)  // TCX_NEXT

// What a program has done so far, per CPU.
#define COUNTERS(of_type)                        \
    struct {                                     \
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
        __uint(max_entries, 1);                  \
        __type(key, __u32);                      \
        __type(value, of_type);                  \
    } counters SEC(".maps")

enum { IP_LENGTH = ETHERNET + 2, IP_ID = ETHERNET + 4, IP_CHECKSUM = ETHERNET + 10 };

struct segment {
    __u32 tcp;      // where the TCP header begins
    __u32 options;  // where its options begin
    __u32 payload;  // where they end
    __u32 bytes;    // of payload
    __u32 sequence;
    __u32 acknowledged;
};

// Read the headers; return whether it is a whole TCP/IPv4 segment.
static __always_inline int read_segment(struct __sk_buff *skb, struct segment *out) {
    __u8 ip[20], tcp[20];
    if (skb->protocol != bpf_htons(0x0800) || bpf_skb_load_bytes(skb, ETHERNET, ip, sizeof ip))
        return 0;
    __u32 header = (ip[0] & 15) * 4, total = (__u32)ip[2] << 8 | ip[3];
    if (ip[0] >> 4 != 4 || header < 20 || ip[9] != IPPROTO_TCP || (ip[6] & 0x3f) || ip[7])
        return 0;
    out->tcp = ETHERNET + header;
    if (bpf_skb_load_bytes(skb, out->tcp, tcp, sizeof tcp))
        return 0;
    __u32 offset = (tcp[12] >> 4) * 4;
    if (offset < 20 || total < header + offset)
        return 0;
    out->options = out->tcp + 20;
    out->payload = out->tcp + offset;
    out->bytes = total - header - offset;
    out->sequence = (__u32)tcp[4] << 24 | (__u32)tcp[5] << 16 | (__u32)tcp[6] << 8 | tcp[7];
    out->acknowledged = (__u32)tcp[8] << 24 | (__u32)tcp[9] << 16 | (__u32)tcp[10] << 8 | tcp[11];
    return 1;
}

char LICENSE[] SEC("license") = "GPL";

#endif
