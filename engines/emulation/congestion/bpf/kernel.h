// The kernel structures and members that are used. Their offsets in the running kernel are filled in when the
// object is loaded (CO-RE), so compiling needs neither that kernel's headers nor its BTF. Names and types are the
// kernel's (include/net/tcp.h, include/linux/tcp.h, net/mptcp/protocol.h).
#ifndef REFABRIC_KERNEL_H
#define REFABRIC_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed int __s32;
typedef signed long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_SK_STORAGE = 24,
    BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024, BPF_SK_STORAGE_GET_F_CREATE = 1 };

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "arithmetic.h"

#define KERNEL __attribute__((preserve_access_index))

enum {
    TCP_ESTABLISHED = 1,
    TCP_CLOSE_WAIT = 8,
    TCP_CA_CWR = 2,
    TCP_CA_RECOVERY = 3,
    TCP_CONG_NON_RESTRICTED = 1,  // any namespace may choose it as its default (namespaces.h)
    TCP_CONG_NEEDS_ECN = 2,
};

enum tcp_ca_event { CA_EVENT_LOSS = 3, CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };

struct list_head {
    struct list_head *next;
} KERNEL;

struct net {
    __u64 net_cookie;
} KERNEL;

typedef struct {
    struct net *net;
} KERNEL possible_net_t;

struct sock_common {
    unsigned char skc_state;
    __be32 skc_daddr;
    __be32 skc_rcv_saddr;
    possible_net_t skc_net;
} KERNEL;

struct sock {
    struct sock_common __sk_common;
    unsigned long sk_pacing_rate;
    __u32 sk_pacing_status;
} KERNEL;

struct tcp_congestion_ops;

struct inet_sock {
    struct sock sk;
} KERNEL;

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    const struct tcp_congestion_ops *icsk_ca_ops;
    void *icsk_ulp_data;
    __u8 icsk_ca_state : 5;
    struct {
        __u8 pending;
    } icsk_ack;
    __u64 icsk_ca_priv[13];
} KERNEL;

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    __u32 mss_cache;
    __u32 snd_cwnd;
    __u32 snd_cwnd_clamp;
    __u32 snd_ssthresh;
    __u32 srtt_us;
    __u32 max_packets_out;
    __u32 snd_una;
    __u32 snd_nxt;
    __u32 rcv_nxt;
    __u32 delivered;
    __u32 delivered_ce;
    __u64 bytes_acked;
    __u64 tcp_mstamp;
    __u32 write_seq;
    __u32 packets_out;
    __u32 retrans_out;
    __u32 sacked_out;
    __u32 lost_out;
    __u8 ecn_flags;
    __u8 is_cwnd_limited : 1;
    bool is_mptcp;
} KERNEL;

struct mptcp_subflow_context {
    struct list_head node;
    struct sock *tcp_sock;
    struct sock *conn;
} KERNEL;

struct mptcp_sock {
    struct list_head conn_list;
} KERNEL;

struct rate_sample {
    int delivered;
    __u32 snd_interval_us;
    __u32 rcv_interval_us;
    long rtt_us;
    int losses;
    __u32 acked_sacked;
} KERNEL;

struct tcp_congestion_ops {
    __u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
    void (*set_state)(struct sock *sk, __u8 state);
    void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
    void (*in_ack_event)(struct sock *sk, __u32 flags);
    __u32 (*undo_cwnd)(struct sock *sk);
    __u32 (*min_tso_segs)(struct sock *sk);
    void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
    void (*init)(struct sock *sk);
    void (*release)(struct sock *sk);
    char name[16];
    __u32 flags;
};

extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern __u32 tcp_slow_start(struct tcp_sock *tp, __u32 acked) __ksym;
extern void *bpf_rdonly_cast(const void *object, __u32 btf_id) __ksym;

struct bpf_iter_num {
    __u64 __opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

char LICENSE[] SEC("license") = "GPL";

#endif
