// Arithmetic of the algorithms: the increase of a window per acknowledged packet, and its size after a loss.
//
// Pure: without kernel types, so tests compile this file for the host and compare it with a floating-point
// model. BPF has neither floating point nor 128-bit integers, so every quantity is a 64-bit integer with a given
// scale. The input is clipped (see `path_of`), so nothing overflows:
//   windows below 2^18 packets, RTTs below 8.4 s, bytes between losses below 2^19 packets.
#ifndef REFABRIC_ARITHMETIC_H
#define REFABRIC_ARITHMETIC_H

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

enum {
    ONE_PACKET_BITS = 32,  // increases: 2^-32 packets
    RATE_BITS = 40,        // rates: 2^-40 packets per 1/8 us
    MAX_PATHS = 64,        // refabric uses up to 32; longer lists are truncated
};
#define ONE_PACKET (1ULL << ONE_PACKET_BITS)
#define MAX_WINDOW ((1U << 18) - 1)
#define MAX_RTT ((1U << 26) - 1)
#define MAX_BETWEEN_LOSSES ((1U << 19) - 1)

// One subflow as its siblings see it: window in packets, smoothed RTT in 1/8 us (the kernel's srtt_us), and
// packets delivered between the last two losses or since the last one, whichever is larger (OLIA).
struct rf_path {
    u32 window;
    u32 rtt;
    u32 between_losses;
};

static inline u32 clipped(u64 value, u32 least, u32 most) {
    return value < least ? least : value > most ? most : (u32)value;
}

static inline struct rf_path path_of(u32 window, u32 rtt, u64 between_losses) {
    struct rf_path path;
    path.window = clipped(window, 1, MAX_WINDOW);
    path.rtt = clipped(rtt, 8, MAX_RTT);
    path.between_losses = clipped(between_losses, 0, MAX_BETWEEN_LOSSES);
    return path;
}

static inline u64 rate_of(const struct rf_path *path) {
    return ((u64)path->window << RATE_BITS) / path->rtt;
}

// Sums over a connection's subflows. Start with zeroes, and `add` each subflow.
struct paths {
    u64 count;
    u64 rate;         // sum of window / RTT
    u64 most_rate;    // the largest window / RTT
    u64 best_window;  // the path with the greatest window / RTT^2
    u64 best_rtt;
    u64 best_rate;
};

// Return whether a has the larger window / RTT^2; the ratio of RTTs has a scale of 2^-16.
static inline int denser(u64 window, u64 rtt, u64 than_window, u64 than_rtt) {
    u64 ratio = (than_rtt << 16) / rtt;
    if (ratio > 1ULL << 26)
        ratio = 1ULL << 26;
    return window * ((ratio * ratio) >> 16) > than_window << 16;
}

static inline void add(struct paths *all, const struct rf_path *path) {
    u64 rate = rate_of(path);
    if (!all->count || denser(path->window, path->rtt, all->best_window, all->best_rtt)) {
        all->best_window = path->window;
        all->best_rtt = path->rtt;
        all->best_rate = rate;
    }
    if (rate > all->most_rate)
        all->most_rate = rate;
    all->rate += rate;
    all->count++;
}

static inline u64 per_ack_of_reno(u64 window) {
    return (ONE_PACKET + window - 1) / window;  // rounded up: `window` acknowledgements add one whole packet
}

// Return a rate's share of all paths' rate, in 2^-24. Both are shifted to prevent overflow and keep 29 bits.
static inline u64 share_of(const struct paths *all, u64 rate) {
    u64 sum = all->rate, shift = sum >> 50 ? 21 : sum >> 40 ? 10 : 0;
    return sum ? ((rate >> shift) << 24) / (sum >> shift) : 0;
}

// share^2 / window = (window / RTT^2) / (sum of window_k / RTT_k)^2, a term of LIA, OLIA and BALIA.
static inline u64 linked(u64 share, u64 window) {
    return (share * share / window) >> 16;
}

// LIA, RFC 6356 section 3: min(alpha / total window, 1 / window).
static inline u64 lia_per_ack(const struct paths *all, const struct rf_path *self) {
    u64 best = linked(share_of(all, all->best_rate), all->best_window);
    u64 reno = per_ack_of_reno(self->window);
    return best < reno ? best : reno;
}

// EWTCP: TCP with weight 1/n^2 on the increase, and thus 1/n of a TCP's rate.
static inline u64 ewtcp_per_ack(const struct paths *all, const struct rf_path *self) {
    return per_ack_of_reno(self->window) / (all->count * all->count);
}

// BALIA: share^2 / window * (1 + alpha) / 2 * (4 + alpha) / 5 with alpha = largest rate / own rate. As alpha *
// share is the largest share, this is (share + largest) * (4 share + largest) / 10 / window, which avoids the
// unbounded ratio alpha.
static inline u64 balia_per_ack(const struct paths *all, const struct rf_path *self) {
    u64 share = share_of(all, rate_of(self)), greatest = share_of(all, all->most_rate);
    u64 balanced = ((share + greatest) * (4 * share + greatest) / 10 / self->window) >> 16;
    u64 reno = per_ack_of_reno(self->window);
    return balanced < reno ? balanced : reno;  // larger only by rounding
}

// BALIA: window - window / 2 * min(alpha, 1.5), at least 2 as in reno.
static inline u32 balia_after_loss(const struct paths *all, const struct rf_path *self) {
    u64 share = share_of(all, rate_of(self)), greatest = share_of(all, all->most_rate);
    u64 alpha = share ? (greatest << 16) / share : 3ULL << 15;
    u64 cut = (self->window * (u64)clipped(alpha, 1U << 16, 3U << 15)) >> 17;
    return clipped(self->window - cut, 2, MAX_WINDOW);
}

// OLIA's sets: paths with the largest (packets between losses)^2 / RTT, and paths with the largest window.
struct olia {
    u64 best_between;
    u64 best_rtt;
    u64 most_window;
    u64 largest;    // number of paths with the largest window
    u64 collected;  // number of best paths without the largest window
};

// Return a value above zero if a's (packets between losses)^2 / RTT is larger, zero if they are equal.
static inline s64 olia_better(u64 between, u64 rtt, u64 than_between, u64 than_rtt) {
    u64 one = between * between * than_rtt, other = than_between * than_between * rtt;
    return one > other ? 1 : one == other ? 0 : -1;
}

// First call this for all paths, then `olia_count` for all.
static inline void olia_look(struct olia *sets, const struct rf_path *path) {
    if (!sets->best_rtt ||
        olia_better(path->between_losses, path->rtt, sets->best_between, sets->best_rtt) > 0) {
        sets->best_between = path->between_losses;
        sets->best_rtt = path->rtt;
    }
    if (path->window > sets->most_window)
        sets->most_window = path->window;
}

static inline int olia_is_largest(const struct olia *sets, const struct rf_path *path) {
    return path->window >= sets->most_window;
}

static inline int olia_is_collected(const struct olia *sets, const struct rf_path *path) {
    return !olia_is_largest(sets, path) &&
           olia_better(path->between_losses, path->rtt, sets->best_between, sets->best_rtt) >= 0;
}

static inline void olia_count(struct olia *sets, const struct rf_path *path) {
    sets->largest += olia_is_largest(sets, path);
    sets->collected += olia_is_collected(sets, path);
}

// OLIA: share + alpha / window, alpha = +-1 / (paths * size of the set). May be negative.
static inline s64 olia_per_ack(const struct paths *all, const struct olia *sets, const struct rf_path *self) {
    s64 both = (s64)linked(share_of(all, rate_of(self)), self->window);
    u64 towards = sets->collected * all->count * self->window;
    u64 away = sets->largest * all->count * self->window;
    if (towards && olia_is_collected(sets, self))
        return both + (s64)(ONE_PACKET / towards);
    if (towards && away && olia_is_largest(sets, self))
        return both - (s64)(ONE_PACKET / away);
    return both;
}

// Return the whole packets by which a window changes after `packets` acknowledgements of `per_ack` each;
// `credit` keeps the rest, between -1 and 1 packet.
static inline s64 whole_packets(s64 *credit, s64 per_ack, u32 packets) {
    s64 total = *credit + per_ack * (s64)clipped(packets, 0, MAX_WINDOW);
    s64 whole = total < 0 ? -(s64)((u64)-total >> ONE_PACKET_BITS) : (s64)((u64)total >> ONE_PACKET_BITS);
    *credit = total - whole * (s64)ONE_PACKET;
    return whole;
}

// DCTCP, RFC 8257 section 3.3, alpha in 2^-20: alpha * (1 - g) + g * marked / delivered, g = 1/16.
static inline u32 dctcp_alpha(u32 alpha, u32 delivered, u32 marked) {
    u64 fraction = delivered ? ((u64)clipped(marked, 0, delivered) << 20) / delivered : 0;
    return (u32)((15 * (u64)alpha + fraction + 8) >> 4);
}

// DCTCP: window * (1 - alpha / 2), at least 2 as in reno.
static inline u32 dctcp_after_marks(u32 window, u32 alpha) {
    return clipped(window - (u32)((u64)window * alpha >> 21), 2, MAX_WINDOW);
}

// minTCP's largest window in packets, from its setting: 0 is no limit.
static inline u32 mintcp_limit(u64 setting) {
    return setting ? clipped(setting, 1, MAX_WINDOW) : MAX_WINDOW;
}

static inline u32 mintcp_after_loss(u32 window) {
    return clipped(window / 2, 2, MAX_WINDOW);
}

#endif
