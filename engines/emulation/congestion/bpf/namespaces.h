// Which sockets a program takes: those in the network namespaces of the run's hosts. The kernel has one list of
// congestion controls for all namespaces, and any user may choose from it. TCP_CONG_NON_RESTRICTED is not what lets her:
// without it she would have CAP_NET_ADMIN in a namespace of her own. Hosts need it for their sysctl
// tcp_congestion_control, and a refused attempt to set that would keep the program in memory for good: the kernel takes a
// reference before it looks at the flag, and does not give it back (tcp_set_default_congestion_control, Linux 6.18).
#ifndef REFABRIC_NAMESPACES_H
#define REFABRIC_NAMESPACES_H

#include "kernel.h"

enum { MAX_NAMESPACES = 16384 };
enum { SOL_TCP = 6, TCP_CONGESTION = 13 };
enum { UNDECIDED, OURS, FOREIGN };

// The hosts' namespaces by their cookies, which the kernel gives to no other namespace until it is booted again. The
// run adds them before its sockets connect.
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, MAX_NAMESPACES);
    __type(key, __u64);
    __type(value, __u32);
} namespaces SEC(".maps");

static __always_inline struct tcp_sock *tcp_of(struct sock *sk) {
    return (struct tcp_sock *)sk;
}

// Return whether the socket is in one of the run's namespaces. Every callback asks, because a socket can be here without
// `init`, or stay after it (`keep_or_leave`). The answer is in the last word of the socket's private memory, which is
// zero when it gets this control.
static __always_inline bool is_ours(struct sock *sk) {
    u64 *answer = &tcp_of(sk)->inet_conn.icsk_ca_priv[12];
    if (*answer == UNDECIDED) {
        __u64 cookie = sk->__sk_common.skc_net.net->net_cookie;
        *answer = bpf_map_lookup_elem(&namespaces, &cookie) ? OURS : FOREIGN;
    }
    return *answer == OURS;
}

// For `init`: return whether the socket is the run's; give any other one to the kernel's reno at once. The kernel refuses
// that for a control which the socket's route prescribes (`ip route ... congctl lock`).
static __always_inline bool keep_or_leave(struct sock *sk) {
    static const char reno[] = "reno";
    if (is_ours(sk))
        return 1;
    bpf_setsockopt(sk, SOL_TCP, TCP_CONGESTION, (void *)reno, sizeof reno);
    return 0;
}

#endif
