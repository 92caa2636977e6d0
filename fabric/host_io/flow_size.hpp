// What the hosts' kernels must know of a flow to stamp its rank on every packet: its size, in socket storage that a
// BPF program of the sender reads (engines/emulation/congestion/bpf/stamp.bpf.c has the same structure).
#pragma once

#include <cstdint>

namespace fabric {

struct FlowSize {
  std::uint64_t size_bytes = 0;  // 0: without end
  std::uint64_t by_sent = 0;     // 1: the rank is what was sent, not what remains
};

// Writes into the map of type BPF_MAP_TYPE_SK_STORAGE. Throws std::system_error.
void store_size(int map, int socket, FlowSize size);

}  // namespace fabric
