// Sends one message to the agent of benchmarks/messages.py from kernel mode, as the datapath sends a report.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "GPL";

struct ping {
    __u64 at_ns, number;
};
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 16);
} pings SEC(".maps");
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} answers SEC(".maps");

struct request {
    __u64 number, wakeup;
};

SEC("syscall")
int send(struct request *request) {
    struct ping *ping = bpf_ringbuf_reserve(&pings, sizeof *ping, 0);
    if (!ping)
        return 1;
    ping->number = request->number;
    ping->at_ns = bpf_ktime_get_ns();
    bpf_ringbuf_submit(ping, request->wakeup ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    return 0;
}
