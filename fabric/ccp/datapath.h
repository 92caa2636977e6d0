// The datapath of a congestion control plane (Narayan et al., SIGCOMM 2018), pure: fold programs with the semantics of
// libccp's instruction set, the window they lead to, and Reno for when no agent answers. The simulator (C++) and the
// kernel's datapath (BPF, engines/emulation/congestion/bpf/) include this file, so both run the same program.
#ifndef REFABRIC_CCP_DATAPATH_H
#define REFABRIC_CCP_DATAPATH_H

typedef unsigned char ccp_u8;
typedef unsigned int ccp_u32;
typedef unsigned long long ccp_u64;

#define CCP_INLINE static inline __attribute__((always_inline, unused))

enum {
    CCP_REGISTERS = 128,  // a power of two: indices are masked
    CCP_INSTRUCTIONS = 256,
    CCP_FIELDS = 16,  // of a report; and as many control variables
    CCP_PROGRAMS = 16,  // of an agent
    CCP_MAX_PACKETS = 1 << 20,
    CCP_MIN_PACKETS = 2,  // of a command; a timeout leaves one packet
};

// Where the registers of libccp's types are.
enum {
    CCP_REPORT = 0,
    CCP_CONTROL = 16,
    CCP_FLAG = 32,
    CCP_FALLTHROUGH = 33,
    CCP_SHOULD_REPORT = 34,
    CCP_MICROS = 35,
    CCP_CWND = 36,
    CCP_RATE = 37,
    CCP_TMP = 40,
    CCP_LOCAL = 56,
    CCP_PRIMITIVE = 64,
};

// Primitives in libccp's order, and one of ours: the time between reports that the run asks for.
enum {
    CCP_BYTES_ACKED,
    CCP_BYTES_MISORDERED,
    CCP_ECN_BYTES,
    CCP_ECN_PACKETS,
    CCP_LOST_PACKETS,
    CCP_NOW,
    CCP_PACKETS_ACKED,
    CCP_PACKETS_MISORDERED,
    CCP_BYTES_IN_FLIGHT,
    CCP_BYTES_PENDING,
    CCP_PACKETS_IN_FLIGHT,
    CCP_RATE_INCOMING,
    CCP_RATE_OUTGOING,
    CCP_RTT_SAMPLE,
    CCP_WAS_TIMEOUT,
    CCP_REPORT_US,
};

enum {
    CCP_OP_ADD,
    CCP_OP_BIND,
    CCP_OP_DEF,
    CCP_OP_DIV,
    CCP_OP_EQUIV,
    CCP_OP_EWMA,
    CCP_OP_GT,
    CCP_OP_IF,
    CCP_OP_LT,
    CCP_OP_MAX,
    CCP_OP_MAXWRAP,
    CCP_OP_MIN,
    CCP_OP_MUL,
    CCP_OP_NOTIF,
    CCP_OP_SUB,
    CCP_OP_UNLESS = 32,  // ours: skip `right` instructions unless the event's condition holds
    CCP_OP_STOP = 33,    // ours: the event was the last, unless it falls through
};

#define CCP_INFINITE_IMMEDIATE 0xffffffffU
#define CCP_NO_RTT 0xffffffffULL  // where an acknowledgement gives no sample, as in libccp

struct ccp_instruction {
    ccp_u8 op, to, left_is_immediate, right_is_immediate;
    ccp_u32 left, right;
};

// Instructions [0, initial) set all variables, [initial, reset) those that each report resets, [reset, end) run on
// every acknowledgement.
struct ccp_program {
    ccp_u32 fields, initial, reset, end;
    struct ccp_instruction code[CCP_INSTRUCTIONS];
};

struct ccp_flow {
    ccp_u64 registers[CCP_REGISTERS];
    ccp_u64 zero_us;   // when Micros was 0
    ccp_u64 window;    // bytes
    ccp_u64 rate;      // bytes per second; 0: not paced
    ccp_u64 ssthresh;  // bytes; of the fallback
    ccp_u64 credit;    // of the fallback: growth smaller than a byte
    ccp_u64 cut_us;    // of the fallback: its last reduction for a loss
    ccp_u64 errors;    // overflows, underflows, divisions by zero
    ccp_u64 fallbacks; // acknowledgements without an agent
    ccp_u32 program;   // its number in the agent's table
    ccp_u32 staged_program;   // for the next acknowledgement: its number and 1; 0: the same as before
    ccp_u32 staged_controls;  // bit i: staged[i] is set
    ccp_u32 at;               // of the BPF datapath: the next instruction
    ccp_u64 staged[CCP_FIELDS];
};

enum ccp_outcome { CCP_NEXT, CCP_DONE, CCP_ERROR };

CCP_INLINE ccp_u32 ccp_distance(ccp_u32 from, ccp_u32 to) {
    return to > from ? to - from : 0xffffffffU - from + to;
}

// The later of two sequence numbers of 32 bits; 0 is none.
CCP_INLINE ccp_u64 ccp_later(ccp_u64 a, ccp_u64 b) {
    ccp_u32 left = (ccp_u32)a, right = (ccp_u32)b;
    if (a == 0)
        return b;
    if (b == 0)
        return a;
    return ccp_distance(right, left) < ccp_distance(left, right) ? left : right;
}

// Run the instruction at `*at` and move on. The caller keeps `*at` below the program's end.
CCP_INLINE int ccp_step(struct ccp_flow *flow, const struct ccp_program *program, ccp_u32 *at) {
    const struct ccp_instruction *now = &program->code[*at & (CCP_INSTRUCTIONS - 1)];
    ccp_u64 *registers = flow->registers;
    ccp_u64 a = now->left_is_immediate ? now->left : registers[now->left & (CCP_REGISTERS - 1)];
    ccp_u64 b = now->right_is_immediate ? now->right : registers[now->right & (CCP_REGISTERS - 1)];
    ccp_u64 *to = &registers[now->to & (CCP_REGISTERS - 1)];
    ccp_u64 value;
    *at += 1;
    switch (now->op) {
    case CCP_OP_ADD:
        value = a + b;
        if (value < a)
            return CCP_ERROR;
        break;
    case CCP_OP_BIND:
        value = b;
        break;
    case CCP_OP_DEF:
        value = b == CCP_INFINITE_IMMEDIATE ? ~0ULL : b;
        break;
    case CCP_OP_DIV:
        if (b == 0)
            return CCP_ERROR;
        value = a / b;
        break;
    case CCP_OP_EQUIV:
        value = a == b;
        break;
    case CCP_OP_EWMA:  // a tenths of the old value
        value = *to == 0 ? b : (a * *to + (10 - a) * b) / 10;
        break;
    case CCP_OP_GT:
        value = a > b;
        break;
    case CCP_OP_IF:
        if (a == 0)
            return CCP_NEXT;
        value = b;
        break;
    case CCP_OP_LT:
        value = a < b;
        break;
    case CCP_OP_MAX:
        value = a > b ? a : b;
        break;
    case CCP_OP_MAXWRAP:
        value = ccp_later(a, b);
        break;
    case CCP_OP_MIN:
        value = a < b ? a : b;
        break;
    case CCP_OP_MUL:
        value = a * b;
        if (value < a && b > 0)
            return CCP_ERROR;
        break;
    case CCP_OP_NOTIF:
        if (a != 0)
            return CCP_NEXT;
        value = b;
        break;
    case CCP_OP_SUB:
        value = a - b;
        if (value > a)
            return CCP_ERROR;
        break;
    case CCP_OP_UNLESS:
        if (registers[CCP_FLAG] == 0)
            *at += now->right & (CCP_INSTRUCTIONS - 1);
        return CCP_NEXT;
    case CCP_OP_STOP:
        return registers[CCP_FALLTHROUGH] ? CCP_NEXT : CCP_DONE;
    default:
        return CCP_ERROR;
    }
    *to = value;
    return CCP_NEXT;
}

// Run instructions [from, end). Return whether all went well. The BPF datapath has its own loop.
#ifndef CCP_OWN_LOOP
CCP_INLINE int ccp_execute(struct ccp_flow *flow, const struct ccp_program *program, ccp_u32 from, ccp_u32 end) {
    while (from < end) {
        int outcome = ccp_step(flow, program, &from);
        if (outcome == CCP_ERROR)
            return 0;
        if (outcome == CCP_DONE)
            return 1;
    }
    return 1;
}
#else
static int ccp_execute(struct ccp_flow *flow, const struct ccp_program *program, ccp_u32 from, ccp_u32 end);
#endif

CCP_INLINE ccp_u64 ccp_within(ccp_u64 window, ccp_u64 least, ccp_u64 mss) {
    if (window < least * mss)
        return least * mss;
    return window > CCP_MAX_PACKETS * mss ? CCP_MAX_PACKETS * mss : window;
}

// Let the flow run this program: all its variables get their initial values, and Micros runs from 0. The window, the
// rate, and variables that the program does not declare stay as they are (libccp, ccp_invoke).
CCP_INLINE void ccp_change(struct ccp_flow *flow, const struct ccp_program *program, ccp_u64 now_us) {
    flow->zero_us = now_us;
    ccp_execute(flow, program, 0, program->initial);
}

CCP_INLINE void ccp_begin(struct ccp_flow *flow, const struct ccp_program *program, ccp_u64 window, ccp_u64 now_us) {
    flow->window = window;
    ccp_change(flow, program, now_us);
}

// A program and controls that the agent sets wait for the next acknowledgement. Controls that it set before a change of
// program were meant for the old one and are dropped (libccp, ccp_read_msg).
CCP_INLINE void ccp_stage_program(struct ccp_flow *flow, ccp_u32 number) {
    flow->staged_program = (number & (CCP_PROGRAMS - 1)) + 1;
    flow->staged_controls = 0;
}

CCP_INLINE void ccp_stage_control(struct ccp_flow *flow, ccp_u32 number, ccp_u64 value) {
    number &= CCP_FIELDS - 1;
    flow->staged[number] = value;
    flow->staged_controls |= 1U << number;
}

// Make the staged program the flow's. Return whether there was one; the caller then calls ccp_change.
CCP_INLINE int ccp_take_program(struct ccp_flow *flow) {
    if (!flow->staged_program)
        return 0;
    flow->program = flow->staged_program - 1;
    flow->staged_program = 0;
    return 1;
}

CCP_INLINE void ccp_take_controls(struct ccp_flow *flow) {
    if (!flow->staged_controls)
        return;
    for (ccp_u32 i = 0; i < CCP_FIELDS; i++)
        if (flow->staged_controls & (1U << i))
            flow->registers[CCP_CONTROL + i] = flow->staged[i];
    flow->staged_controls = 0;
}

// Reno by bytes (RFC 5681), from the window that the agent left.
CCP_INLINE void ccp_fall_back(struct ccp_flow *flow, ccp_u64 mss, ccp_u64 now_us, ccp_u64 srtt_us) {
    const ccp_u64 *acknowledged = &flow->registers[CCP_PRIMITIVE];
    flow->fallbacks++;
    flow->rate = 0;
    if (acknowledged[CCP_LOST_PACKETS] > 0) {
        if (now_us - flow->cut_us <= srtt_us)
            return;
        flow->cut_us = now_us;
        flow->window = flow->ssthresh = ccp_within(flow->window / 2, CCP_MIN_PACKETS, mss);
        return;
    }
    if (flow->window < flow->ssthresh) {
        flow->window += acknowledged[CCP_BYTES_ACKED];
    } else {
        ccp_u64 window = flow->window ? flow->window : 1;
        flow->credit += mss * acknowledged[CCP_BYTES_ACKED];
        flow->window += flow->credit / window;
        flow->credit %= window;
    }
    flow->window = ccp_within(flow->window, 1, mss);
}

// Take one acknowledgement, whose primitives are in the registers. `silent`: no agent answers. Return whether to
// report; the caller takes the fields and then calls ccp_reported.
CCP_INLINE int ccp_acknowledged(struct ccp_flow *flow, const struct ccp_program *program, ccp_u64 mss, ccp_u64 now_us,
                                ccp_u64 srtt_us, int silent) {
    ccp_u64 *registers = flow->registers;
    ccp_u64 micros = now_us - flow->zero_us;
    registers[CCP_FLAG] = registers[CCP_FALLTHROUGH] = registers[CCP_SHOULD_REPORT] = 0;
    registers[CCP_MICROS] = micros;
    registers[CCP_CWND] = flow->window;
    registers[CCP_RATE] = flow->rate;
    int good = ccp_execute(flow, program, program->reset, program->end);
    if (registers[CCP_MICROS] != micros)
        flow->zero_us = now_us - registers[CCP_MICROS];
    if (!good)
        flow->errors++;
    if (silent) {
        ccp_fall_back(flow, mss, now_us, srtt_us);
    } else if (good) {
        if (registers[CCP_CWND] != flow->window && registers[CCP_CWND] != 0)  // 0 sets nothing, as in libccp
            flow->window = ccp_within(registers[CCP_CWND], CCP_MIN_PACKETS, mss);
        if (registers[CCP_RATE] != 0)
            flow->rate = registers[CCP_RATE];
    }
    return good && registers[CCP_SHOULD_REPORT] != 0;
}

CCP_INLINE void ccp_reported(struct ccp_flow *flow, const struct ccp_program *program) {
    ccp_execute(flow, program, program->initial, program->reset);
}

// The retransmission timer expired: one packet until the agent or the fallback says more.
CCP_INLINE void ccp_timed_out(struct ccp_flow *flow, ccp_u64 mss) {
    flow->ssthresh = ccp_within(flow->window / 2, CCP_MIN_PACKETS, mss);
    flow->window = mss;
}

CCP_INLINE void ccp_command_window(struct ccp_flow *flow, ccp_u64 window, ccp_u64 mss) {
    flow->window = ccp_within(window, CCP_MIN_PACKETS, mss);
}

#endif
