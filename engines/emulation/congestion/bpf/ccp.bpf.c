// The datapath of a congestion control plane in the kernel: fold programs (fabric/ccp/datapath.h) on every
// acknowledgement, reports to the agent in a ring buffer, commands from it in a map, Reno when it is silent.
#define CCP_OWN_LOOP
#include "counted.h"
#include "ccp/datapath.h"

#include "ccp_flow.h"

enum { MAX_FLOWS = 65536 };
enum { NO_WAKEUP = 1, WAKEUP = 2 };

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ccp_program);
} program SEC(".maps");

// Written by the agent: when it last was ready to work, and the time between reports that the run asks for.
struct control {
    u64 heartbeat_ns;
    u64 report_us;
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct control);
} control SEC(".maps");

// All that the agent has set for a flow. A part is carried out when its number changes.
struct command {
    u64 window, rate;
    u32 window_number, rate_number, controls_number, fall_back;
    u64 controls[CCP_FIELDS];
};
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, MAX_FLOWS);
    __type(key, __u32);
    __type(value, struct command);
} commands SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 22);
} events SEC(".maps");

struct state {
    struct ccp_flow flow;
    struct ccp_last last;
    u32 number;
    u32 window_number, rate_number, controls_number, fallen_back;
};
struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct state);
} states SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ccp_activity);
} activities SEC(".maps");

u32 flows_so_far = 0;

struct run {
    struct ccp_flow *flow;
    const struct ccp_program *program;
    u32 at, end, outcome;
};

static long run_one(u32 i, struct run *run) {
    u32 at = run->at;
    if (at >= run->end || at >= CCP_INSTRUCTIONS)
        return 1;
    run->outcome = ccp_step(run->flow, run->program, &at);
    run->at = at;
    return run->outcome != CCP_NEXT;
}

static __attribute__((noinline)) int ccp_execute(struct ccp_flow *flow, const struct ccp_program *program, u32 from,
                                                 u32 end) {
    struct run run = {.flow = flow, .program = program, .at = from, .end = end, .outcome = CCP_NEXT};
    bpf_loop(CCP_INSTRUCTIONS, run_one, &run, 0);
    return run.outcome != CCP_ERROR;
}

static __always_inline struct ccp_activity *activity(void) {
    __u32 key = 0;
    return bpf_map_lookup_elem(&activities, &key);
}

static __always_inline void tell(struct sock *sk, struct state *state, u32 kind, u32 mss, u64 wakeup) {
    struct ccp_event *event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
    struct ccp_activity *count = activity();
    if (!event) {
        if (count)
            count->unreported++;
        return;
    }
    event->kind = kind;
    event->flow = state->number;
    event->mss = mss;
    event->pad = 0;
    event->source = sk->__sk_common.skc_rcv_saddr;
    event->destination = sk->__sk_common.skc_daddr;
    event->at_ns = bpf_ktime_get_ns();
    event->window = state->flow.window;
    for (int i = 0; i < CCP_FIELDS; i++)
        event->fields[i] = state->flow.registers[CCP_REPORT + i];
    bpf_ringbuf_submit(event, wakeup);
}

static __always_inline void use(struct sock *sk, struct state *state, u64 mss) {
    tcp_of(sk)->snd_cwnd = ccp_packets(&state->flow, mss);
    u64 rate = ccp_pacing_rate(&state->flow, tcp_of(sk), mss);
    if (sk->sk_pacing_rate != rate)
        sk->sk_pacing_rate = rate;
    if (state->flow.rate && !sk->sk_pacing_status)
        sk->sk_pacing_status = 1;  // SK_PACING_NEEDED: TCP's own timer paces
}

// Carry out what the agent has set since the last call. Return whether there was anything.
static __always_inline bool obey(struct state *state, u64 mss) {
    u32 number = state->number;
    struct command *command = bpf_map_lookup_elem(&commands, &number);
    bool changed = 0;
    if (!command)
        return 0;
    if (command->controls_number != state->controls_number) {
        state->controls_number = command->controls_number;
        for (int i = 0; i < CCP_FIELDS; i++)
            state->flow.registers[CCP_CONTROL + i] = command->controls[i];
        changed = 1;
    }
    state->fallen_back = command->fall_back;
    if (command->window_number != state->window_number) {
        state->window_number = command->window_number;
        ccp_command_window(&state->flow, command->window, mss);
        changed = 1;
    }
    if (command->rate_number != state->rate_number) {
        state->rate_number = command->rate_number;
        state->flow.rate = command->rate;
        changed = 1;
    }
    struct ccp_activity *count = activity();
    if (changed && count)
        count->commands++;
    return changed;
}

static __always_inline void fold(struct sock *sk, struct state *state, u64 mss, u64 urgent) {
    struct tcp_sock *tp = tcp_of(sk);
    __u32 key = 0;
    struct ccp_program *running = bpf_map_lookup_elem(&program, &key);
    struct control *agent = bpf_map_lookup_elem(&control, &key);
    struct ccp_activity *count = activity();
    if (!running || !agent || !count)
        return;
    u64 now_ns = bpf_ktime_get_ns();
    bool silent = state->fallen_back || ccp_is_late(now_ns, agent->heartbeat_ns);
    if (ccp_fold(&state->flow, running, tp, mss, now_ns, agent->report_us, silent, count)) {
        tell(sk, state, MEASURED, mss, urgent);
        ccp_reported(&state->flow, running);
    }
    use(sk, state, mss);
}

static __always_inline struct state *begun(struct sock *sk, u64 mss) {
    struct tcp_sock *tp = tcp_of(sk);
    __u32 key = 0;
    struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);
    if (state || tp->bytes_acked <= 1)  // the SYN counts as one byte; a socket that sends no data is no flow
        return state;
    struct ccp_program *running = bpf_map_lookup_elem(&program, &key);
    state = bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!state || !running)
        return 0;
    state->number = __sync_fetch_and_add(&flows_so_far, 1) + 1;
    state->last.delivered_ce = tp->delivered_ce;
    ccp_begin(&state->flow, running, tp->snd_cwnd * mss, bpf_ktime_get_ns() / 1000);
    tell(sk, state, CREATED, mss, WAKEUP);
    return state;
}

SEC("struct_ops/init")
void BPF_PROG(start, struct sock *sk) {
    struct tcp_sock *tp = tcp_of(sk);
    // With cong_control the kernel does not set it.
    sk->sk_pacing_rate = ccp_usual_rate(tp, tp->mss_cache ? tp->mss_cache : 1);
}

SEC("struct_ops/release")
void BPF_PROG(end, struct sock *sk) {
    struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);
    if (!state)
        return;
    u32 number = state->number;
    tell(sk, state, CLOSED, 0, NO_WAKEUP);
    bpf_map_delete_elem(&commands, &number);
}

SEC("struct_ops/cong_control")
void BPF_PROG(every_ack, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs) {
    struct tcp_sock *tp = tcp_of(sk);
    u64 mss = tp->mss_cache ? tp->mss_cache : 1;
    count_ack();
    struct state *state = begun(sk, mss);
    if (!state)
        return;
    ccp_measure(&state->flow, &state->last, tp, rs, mss);
    obey(state, mss);
    fold(sk, state, mss, state->flow.registers[CCP_PRIMITIVE + CCP_LOST_PACKETS] ? WAKEUP : NO_WAKEUP);
}

SEC("struct_ops/set_state")
void BPF_PROG(state_changes, struct sock *sk, __u8 to) {
    u64 mss = tcp_of(sk)->mss_cache ? tcp_of(sk)->mss_cache : 1;
    if (to != LOSS_STATE)
        return;
    struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);
    if (!state)
        return;
    ccp_measure_timeout(&state->flow, mss);
    fold(sk, state, mss, WAKEUP);
}

// Runs before each attempt to send, so that commands do not wait for an acknowledgement.
SEC("struct_ops/min_tso_segs")
__u32 BPF_PROG(before_sending, struct sock *sk) {
    u64 mss = tcp_of(sk)->mss_cache ? tcp_of(sk)->mss_cache : 1;
    struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);
    if (state && obey(state, mss))
        use(sk, state, mss);
    return 2;
}

SEC("struct_ops/ssthresh")
__u32 BPF_PROG(cut, struct sock *sk) {
    count_loss();
    return clipped(tcp_of(sk)->snd_cwnd / 2, 2, MAX_WINDOW);
}

SEC("struct_ops/undo_cwnd")
__u32 BPF_PROG(undo, struct sock *sk) {
    return tcp_of(sk)->snd_cwnd;
}

SEC(".struct_ops")
struct tcp_congestion_ops ops = {
    .init = (void *)start,
    .release = (void *)end,
    .cong_control = (void *)every_ack,
    .set_state = (void *)state_changes,
    .min_tso_segs = (void *)before_sending,
    .ssthresh = (void *)cut,
    .undo_cwnd = (void *)undo,
    .name = "rf_ccp",
    .flags = TCP_CONG_NON_RESTRICTED,
};
