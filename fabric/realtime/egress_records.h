/* What egress.bpf.c (engines/emulation/dataplanes/bpf) writes and the core reads: C for the one, C++ for the other. */
#ifndef FABRIC_EGRESS_RECORDS_H
#define FABRIC_EGRESS_RECORDS_H

#include <linux/types.h>

enum {
  EGRESS_RING_BYTES = 16 << 20,
  EGRESS_SMALL = 104,       /* room for a pure ACK with all options that MPTCP uses */
  EGRESS_FULL = 1640,       /* room for a full frame; more than 1514 + EGRESS_MAX_HEADER for the verifier's sake */
  EGRESS_MAX_HEADER = 134,  /* Ethernet, IP and TCP with all options */
};

/* The frame follows. */
struct egress_record {
  __u64 t_ns;      /* CLOCK_MONOTONIC */
  __u32 ifindex;   /* of the host's end, in the host's namespace */
  __u16 length;    /* of the frame */
  __u16 gso_size;  /* payload of a full segment of the same GSO packet; 0: a packet of its own */
  __u8 segment;    /* number of this segment in its GSO packet */
  __u8 more;       /* there are segments after it */
};

struct egress_state {
  __u32 asleep; /* the core waits for a wake-up */
  __u32 unused;
  __u64 taken;
  __u64 drops;  /* frames that found no room */
};

#endif
