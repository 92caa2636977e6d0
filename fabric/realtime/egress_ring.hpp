// Frames that a BPF program takes off the hosts' NICs (engines/emulation/dataplanes/bpf/egress.bpf.c): the other way
// in, beside the packet socket, where the kernel has it. Source: kernel/bpf/ringbuf.c.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "realtime/egress_records.h"
#include "realtime/file_descriptor.hpp"
#include "realtime/segments.hpp"

namespace fabric {

struct EgressFrame {
  std::size_t ifindex;        // of the host's end, in its namespace
  std::int64_t monotonic_ns;  // when it left the host's stack
  std::span<const std::uint8_t> bytes;
  Segment segment;  // gso_size 0: a packet of its own
};

class EgressRing {
 public:
  // Maps the two maps of egress.bpf.c. The descriptors stay the caller's.
  EgressRing(int frames_fd, int state_fd);
  EgressRing(const EgressRing&) = delete;
  EgressRing& operator=(const EgressRing&) = delete;
  ~EgressRing();

  // Calls handle(EgressFrame) for up to `most` waiting frames; returns how many there were.
  template <class Handler>
  std::size_t drain(std::size_t most, Handler&& handle) {
    const std::uint64_t produced = __atomic_load_n(producer_, __ATOMIC_ACQUIRE);
    std::size_t count = 0;
    while (consumed_ != produced && count < most) {
      const std::uint8_t* at = data_ + (consumed_ & (kBytes - 1));
      const std::uint32_t length = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
      if ((length & kBusy) != 0) break;
      if ((length & kDiscarded) == 0) {
        handle(describe(at + kRecordHeader));
        ++count;
      }
      consumed_ += ((length & ~kDiscarded) + kRecordHeader + 7) & ~std::uint64_t{7};
    }
    __atomic_store_n(consumer_, consumed_, __ATOMIC_RELEASE);
    return count;
  }

  // Has the next frame wake up whoever polls fd(); false if one is waiting already.
  bool fall_asleep();
  void wake_up() { __atomic_store_n(&state_->asleep, 0U, __ATOMIC_RELAXED); }

  [[nodiscard]] std::uint64_t taken() const { return __atomic_load_n(&state_->taken, __ATOMIC_RELAXED); }
  [[nodiscard]] std::uint64_t drops() const { return __atomic_load_n(&state_->drops, __ATOMIC_RELAXED); }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  static constexpr std::uint64_t kBytes = EGRESS_RING_BYTES;
  static constexpr std::size_t kRecordHeader = 8;
  static constexpr std::uint32_t kBusy = 1U << 31, kDiscarded = 1U << 30;

  static EgressFrame describe(const std::uint8_t* record);

  FileDescriptor fd_;
  std::size_t page_;
  std::uint64_t* consumer_ = nullptr;
  const std::uint64_t* producer_ = nullptr;  // its page; the data follow, mapped twice in a row
  const std::uint8_t* data_ = nullptr;
  egress_state* state_ = nullptr;
  std::uint64_t consumed_ = 0;
};

}  // namespace fabric
