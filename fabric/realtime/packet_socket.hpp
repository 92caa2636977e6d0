// AF_PACKET: all hosts' frames come in through one memory-mapped ring and go out in batches.
// Source: packet(7), Documentation/networking/packet_mmap.rst.
#pragma once

#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "realtime/file_descriptor.hpp"
#include "realtime/frame.hpp"

namespace fabric {

struct ReceivedFrame {
  int ifindex;
  std::int64_t realtime_ns;             // kernel's CLOCK_REALTIME at reception
  std::span<const std::uint8_t> bytes;  // virtio header, then the frame
  bool whole;                           // false: longer than a ring slot, or several segments in one
  bool tagged;                          // its VLAN tag is in the kernel's header, not in `bytes`
};

// Every frame that any interface of this network namespace receives.
class ReceiveRing {
 public:
  ReceiveRing();
  ReceiveRing(const ReceiveRing&) = delete;
  ReceiveRing& operator=(const ReceiveRing&) = delete;
  ~ReceiveRing();

  // Calls handle(ReceivedFrame) for up to `most` waiting frames; returns how many there were.
  template <class Handler>
  std::size_t drain(std::size_t most, Handler&& handle) {
    std::size_t count = 0;
    for (; count < most; ++count) {
      auto* header = slot(next_);
      if ((__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0) break;
      handle(describe(header));
      __atomic_store_n(&header->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
      next_ = (next_ + 1) % kFrames;
    }
    return count;
  }

  // Frames the kernel could not put into the ring since the socket was opened.
  std::uint64_t drops();

  [[nodiscard]] int fd() const { return socket_.get(); }

 private:
  static constexpr std::size_t kFrames = 16384;  // 80 ms of 200 000 frames a second
  static constexpr std::size_t kFrameBytes = 2048;
  static constexpr std::size_t kBlockBytes = 1 << 17;

  tpacket2_hdr* slot(std::size_t i) const {
    return reinterpret_cast<tpacket2_hdr*>(ring_ + i * kFrameBytes);
  }
  static ReceivedFrame describe(const tpacket2_hdr* header);

  FileDescriptor socket_;
  std::uint8_t* ring_ = nullptr;
  std::size_t next_ = 0;
  std::uint64_t drops_ = 0;
};

// Collects frames and sends them with one system call.
class TransmitBatch {
 public:
  TransmitBatch();

  [[nodiscard]] bool full() const { return count_ == kBatch; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  void add(int ifindex, FrameSlot& slot);

  // Sends what was added, in order, and empties the batch. Returns the number of frames the kernel
  // refused (an interface that went away, no memory).
  std::uint64_t flush();

 private:
  static constexpr std::size_t kBatch = 64;

  FileDescriptor socket_;
  std::array<mmsghdr, kBatch> messages_{};
  std::array<iovec, kBatch> buffers_{};
  std::array<sockaddr_ll, kBatch> addresses_{};
  std::size_t count_ = 0;
};

}  // namespace fabric
