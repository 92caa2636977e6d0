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
    __uint(max_entries, CCP_PROGRAMS);
    __type(key, __u32);
    __type(value, struct ccp_program);
} programs SEC(".maps");

// Memory that the agent writes: when it last was ready to work, the time between reports that the run asks for, and a
// number that changes after every command, so that most acknowledgements need not look for one.
struct control {
    u64 heartbeat_ns;
    u64 report_us;
    u64 commands;
};
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct control);
} control SEC(".maps");

// All that the agent has set for a flow. A part is carried out when its number changes. A change of program begins the
// numbers of its controls at 0 again; 0: not set.
struct numbers {
    u32 window, rate, program, controls;  // the last: any control
    u32 control[CCP_FIELDS];
};
struct command {
    u64 window, rate;
    u32 program, fall_back;
    struct numbers numbers;
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
    u32 number, fallen_back;
    struct numbers obeyed;
    u64 commands;  // of struct control, when the flow's command was last looked for
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
    u32 end, outcome;
};

// One call of bpf_loop runs BATCH instructions: the loop inside is what the verifier follows, and a call for each
// instruction would cost more than most of them do.
enum { BATCH = 16 };

static long run_batch(u32 i, struct run *run) {
    struct ccp_flow *flow = run->flow;
    const struct ccp_program *program = run->program;
    u32 end = run->end, outcome;
#pragma clang loop unroll(disable)
    for (int n = 0; n < BATCH; n++) {
        u32 at = *(volatile u32 *)&flow->at;
        if (at >= end)
            return 1;
        outcome = ccp_step(flow, program, &at);
        *(volatile u32 *)&flow->at = at;
        if (outcome != CCP_NEXT) {
            run->outcome = outcome;
            return 1;
        }
    }
    return 0;
}

static __attribute__((noinline)) int ccp_execute(struct ccp_flow *flow, const struct ccp_program *program, u32 from,
                                                 u32 end) {
    struct run run = {.flow = flow, .program = program, .end = end, .outcome = CCP_NEXT};
    flow->at = from;
    if (from < end)
        bpf_loop(CCP_INSTRUCTIONS / BATCH, run_batch, &run, 0);
    return run.outcome != CCP_ERROR;
}

static __always_inline struct ccp_activity *activity(void) {
    __u32 key = 0;
    return bpf_map_lookup_elem(&activities, &key);
}

static __always_inline void tell(struct sock *sk, struct state *state, u32 kind, u32 mss, u64 now_us, u64 wakeup) {
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
    event->program = state->flow.program;
    event->source = sk->__sk_common.skc_rcv_saddr;
    event->destination = sk->__sk_common.skc_daddr;
    event->at_ns = now_us * 1000;
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

static __always_inline void stage(struct state *state, const struct command *command) {
    struct numbers *obeyed = &state->obeyed;
    if (command->numbers.program != obeyed->program) {
        obeyed->program = command->numbers.program;
        __builtin_memset(obeyed->control, 0, sizeof obeyed->control);
        ccp_stage_program(&state->flow, command->program);
    }
    obeyed->controls = command->numbers.controls;
    for (u32 i = 0; i < CCP_FIELDS; i++) {
        if (command->numbers.control[i] != obeyed->control[i]) {
            obeyed->control[i] = command->numbers.control[i];
            ccp_stage_control(&state->flow, i, command->controls[i]);
        }
    }
}

// Carry out what the agent has set since the last call. Return whether there was anything.
static __always_inline bool obey(struct state *state, u64 mss) {
    __u32 key = 0, number = state->number;
    struct control *agent = bpf_map_lookup_elem(&control, &key);
    if (!agent || agent->commands == state->commands)
        return 0;
    state->commands = agent->commands;
    struct command *command = bpf_map_lookup_elem(&commands, &number);
    struct numbers *obeyed = &state->obeyed;
    bool changed = 0;
    if (!command)
        return 0;
    if (command->numbers.program != obeyed->program || command->numbers.controls != obeyed->controls) {
        stage(state, command);
        changed = 1;
    }
    state->fallen_back = command->fall_back;
    if (command->numbers.window != obeyed->window) {
        obeyed->window = command->numbers.window;
        ccp_command_window(&state->flow, command->window, mss);
        changed = 1;
    }
    if (command->numbers.rate != obeyed->rate) {
        obeyed->rate = command->numbers.rate;
        state->flow.rate = command->rate;
        changed = 1;
    }
    struct ccp_activity *count = activity();
    if (changed && count)
        count->commands++;
    return changed;
}

static __always_inline const struct ccp_program *running(const struct state *state) {
    u32 number = state->flow.program;
    return bpf_map_lookup_elem(&programs, &number);
}

// Return the flow's program, with what the agent has staged.
static __always_inline const struct ccp_program *changed(struct state *state, u64 now_us) {
    bool is_new = ccp_take_program(&state->flow);
    const struct ccp_program *program = running(state);
    if (is_new && program)
        ccp_change(&state->flow, program, now_us);
    ccp_take_controls(&state->flow);
    return program;
}

static __always_inline void fold(struct sock *sk, struct state *state, u64 mss, u64 urgent) {
    struct tcp_sock *tp = tcp_of(sk);
    __u32 key = 0;
    u64 now_us = tp->tcp_mstamp;  // of this acknowledgement or timer, by CLOCK_MONOTONIC
    const struct ccp_program *program = changed(state, now_us);
    struct control *agent = bpf_map_lookup_elem(&control, &key);
    struct ccp_activity *count = activity();
    if (!program || !agent || !count)
        return;
    bool silent = state->fallen_back || ccp_is_late(now_us * 1000, agent->heartbeat_ns);
    if (ccp_fold(&state->flow, program, tp, mss, now_us, agent->report_us, silent, count)) {
        tell(sk, state, MEASURED, mss, now_us, urgent);
        ccp_reported(&state->flow, program);
    }
    use(sk, state, mss);
}

static __always_inline struct state *begun(struct sock *sk, u64 mss) {
    struct tcp_sock *tp = tcp_of(sk);
    struct state *state = bpf_sk_storage_get(&states, sk, 0, 0);
    if (state || tp->bytes_acked <= 1)  // the SYN counts as one byte; a socket that sends no data is no flow
        return state;
    state = bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!state)
        return 0;
    const struct ccp_program *program = running(state);
    if (!program)
        return 0;
    state->number = __sync_fetch_and_add(&flows_so_far, 1) + 1;
    state->last.delivered_ce = tp->delivered_ce;
    ccp_begin(&state->flow, program, tp->snd_cwnd * mss, tp->tcp_mstamp);
    tell(sk, state, CREATED, mss, tp->tcp_mstamp, WAKEUP);
    return state;
}

SEC("struct_ops/init")
void BPF_PROG(start, struct sock *sk) {
    if (!keep_or_leave(sk))
        return;
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
    tell(sk, state, CLOSED, 0, bpf_ktime_get_ns() / 1000, NO_WAKEUP);
    bpf_map_delete_elem(&commands, &number);
}

SEC("struct_ops/cong_control")
void BPF_PROG(every_ack, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs) {
    struct tcp_sock *tp = tcp_of(sk);
    u64 mss = tp->mss_cache ? tp->mss_cache : 1;
    if (!is_ours(sk))
        return;
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
    if (is_ours(sk))
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
