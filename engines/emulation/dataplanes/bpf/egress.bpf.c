// Takes IPv4 frames off a host's NIC as they leave its stack, and writes them into a ring that the fabric's core
// has mapped: no veth, no softirq and no packet socket on the way in. A clsact egress filter (Linux >= 5.17).
//
// A GSO packet becomes one record per segment; the core adjusts their headers (realtime/segments.hpp). Frames that
// do not fit a record, and those of other protocols, go on to the packet socket.
#include "egress_records.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum { PASS = TC_ACT_UNSPEC, CONSUMED = TC_ACT_STOLEN };  // to TCP, a stolen packet has been sent
enum { IP_HEADER = 20, TCP_HEADER = 20, MAX_SEGMENTS = 64 };

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, EGRESS_RING_BYTES);
} frames SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct egress_state);
} state SEC(".maps");

struct piece {
    __u32 header;   // bytes to copy from the start of the packet
    __u32 offset;   // of the payload to copy behind them
    __u32 payload;  // 0: the header is all there is
    __u16 gso_size;
    __u8 index;
    __u8 more;
};

static __always_inline void write_record(struct __sk_buff *skb, struct egress_state *ring, const struct piece *piece,
                                         __u64 t_ns, __u32 room) {
    struct egress_record *record = bpf_ringbuf_reserve(&frames, sizeof *record + room, 0);
    if (!record) {
        __sync_fetch_and_add(&ring->drops, 1);
        return;
    }
    record->t_ns = t_ns;
    record->ifindex = skb->ifindex;
    record->length = piece->header + piece->payload;
    record->gso_size = piece->gso_size;
    record->segment = piece->index;
    record->more = piece->more;
    __u8 *bytes = (__u8 *)(record + 1);
    __u32 header = piece->header, payload = piece->payload;
    long failed = -1;
    if (header > 0 && header <= room) failed = bpf_skb_load_bytes(skb, 0, bytes, header);
    if (!failed && payload > 0) {
        failed = -1;
        // EGRESS_MAX_HEADER bounds the offset for the verifier, which does not relate the two lengths.
        if (header <= EGRESS_MAX_HEADER && payload <= room - EGRESS_MAX_HEADER)
            failed = bpf_skb_load_bytes(skb, piece->offset, bytes + header, payload);
    }
    if (failed) {
        bpf_ringbuf_discard(record, BPF_RB_NO_WAKEUP);
        __sync_fetch_and_add(&ring->drops, 1);
        return;
    }
    // A full barrier between the reservation and the look at `asleep`; the core has its own (egress_ring.cpp).
    __sync_fetch_and_add(&ring->taken, 1);
    bpf_ringbuf_submit(record, *(volatile __u32 *)&ring->asleep ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

// Length of the Ethernet, IP and TCP headers, or 0 where the packet is not to be cut.
static __always_inline __u32 tcp_headers(struct __sk_buff *skb) {
    __u8 ip[IP_HEADER], offset;
    if (bpf_skb_load_bytes(skb, ETH_HLEN, ip, sizeof ip) || ip[9] != IPPROTO_TCP) return 0;
    __u32 tcp = ETH_HLEN + (ip[0] & 15) * 4;
    if (bpf_skb_load_bytes(skb, tcp + 12, &offset, 1)) return 0;
    __u32 all = tcp + (offset >> 4) * 4;
    return all <= EGRESS_MAX_HEADER ? all : 0;
}

struct cutting {
    struct __sk_buff *skb;
    struct egress_state *ring;
    __u64 t_ns;
    __u32 header;
    __u32 size;
    __u32 length;
};

// bpf_loop's: one segment. A plain loop makes the verifier look at every iteration by itself.
static long cut_one(__u32 index, struct cutting *cutting) {
    __u32 offset = cutting->header + index * cutting->size;
    if (offset >= cutting->length) return 1;
    __u32 left = cutting->length - offset;
    struct piece piece = {
        .header = cutting->header,
        .offset = offset,
        .payload = left < cutting->size ? left : cutting->size,
        .gso_size = cutting->size,
        .index = index,
        .more = left > cutting->size,
    };
    write_record(cutting->skb, cutting->ring, &piece, cutting->t_ns, EGRESS_FULL);
    return 0;
}

static __always_inline int cut(struct __sk_buff *skb, struct egress_state *ring, __u64 t_ns) {
    struct cutting cutting = {skb, ring, t_ns, tcp_headers(skb), skb->gso_size, skb->len};
    if (cutting.header == 0 || cutting.length <= cutting.header) return PASS;
    if (cutting.size > EGRESS_FULL - EGRESS_MAX_HEADER || cutting.length > cutting.size * MAX_SEGMENTS) return PASS;
    bpf_loop(MAX_SEGMENTS, cut_one, &cutting, 0);
    return CONSUMED;
}

SEC("tc")
int take(struct __sk_buff *skb) {
    __u32 zero = 0;
    struct egress_state *ring = bpf_map_lookup_elem(&state, &zero);
    if (!ring || skb->protocol != bpf_htons(ETH_P_IP)) return PASS;
    __u64 t_ns = bpf_ktime_get_ns();
    if (skb->gso_size) return cut(skb, ring, t_ns);
    struct piece piece = {.header = skb->len, .offset = 0};
    if (skb->len <= EGRESS_SMALL) {
        write_record(skb, ring, &piece, t_ns, EGRESS_SMALL);
    } else if (skb->len <= EGRESS_FULL) {
        write_record(skb, ring, &piece, t_ns, EGRESS_FULL);
    } else {
        return PASS;
    }
    return CONSUMED;
}

char _license[] SEC("license") = "GPL";
