#include "realtime/packet_socket.hpp"

#include <linux/if_ether.h>
#include <net/if.h>

namespace fabric {

namespace {

void set_option(const FileDescriptor& socket, int option, int value, const char* name) {
  checked_call(setsockopt(socket.get(), SOL_PACKET, option, &value, sizeof value),
               std::string("packet socket: setting ") + name);
}

}  // namespace

ReceiveRing::ReceiveRing()
    : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), "opening a packet socket (needs root)") {
  set_option(socket_, PACKET_VERSION, TPACKET_V2, "PACKET_VERSION to V2");
  set_option(socket_, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
  set_option(socket_, PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING");
  tpacket_req request{};
  request.tp_block_size = kBlockBytes;
  request.tp_block_nr = kFrames * kFrameBytes / kBlockBytes;
  request.tp_frame_size = kFrameBytes;
  request.tp_frame_nr = kFrames;
  checked_call(setsockopt(socket_.get(), SOL_PACKET, PACKET_RX_RING, &request, sizeof request),
               "packet socket: asking for a receive ring of 32 MB");
  void* memory = mmap(nullptr, kFrames * kFrameBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      socket_.get(), 0);
  if (memory == MAP_FAILED) throw_errno("mapping the packet socket's receive ring");
  ring_ = static_cast<std::uint8_t*>(memory);
  sockaddr_ll everywhere{};
  everywhere.sll_family = AF_PACKET;
  everywhere.sll_protocol = htons(ETH_P_ALL);
  checked_call(bind(socket_.get(), reinterpret_cast<sockaddr*>(&everywhere), sizeof everywhere),
               "packet socket: bind");
}

ReceiveRing::~ReceiveRing() { munmap(ring_, kFrames * kFrameBytes); }

ReceivedFrame ReceiveRing::describe(const tpacket2_hdr* header) {
  const auto* base = reinterpret_cast<const std::uint8_t*>(header);
  const auto* address = reinterpret_cast<const sockaddr_ll*>(base + TPACKET_ALIGN(sizeof(tpacket2_hdr)));
  const std::uint8_t* start = base + header->tp_mac - FrameSlot::kHeader;
  const auto* virtio = reinterpret_cast<const VirtioHeader*>(start);
  const bool whole = header->tp_snaplen == header->tp_len && virtio->gso_type == 0 &&
                     header->tp_snaplen <= FrameSlot::kCapacity;
  return {address->sll_ifindex,
          std::int64_t{header->tp_sec} * 1'000'000'000 + header->tp_nsec,
          {start, header->tp_snaplen + FrameSlot::kHeader},
          whole,
          (header->tp_status & TP_STATUS_VLAN_VALID) != 0};
}

std::uint64_t ReceiveRing::drops() {
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  checked_call(getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size),
               "packet socket: reading PACKET_STATISTICS");
  drops_ += stats.tp_drops;
  return drops_;
}

TransmitBatch::TransmitBatch()
    : socket_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), "opening a packet socket (needs root)") {
  set_option(socket_, PACKET_VNET_HDR, 1, "PACKET_VNET_HDR");
  set_option(socket_, PACKET_QDISC_BYPASS, 1, "PACKET_QDISC_BYPASS");
  for (std::size_t i = 0; i < kBatch; ++i) {
    addresses_[i].sll_family = AF_PACKET;
    addresses_[i].sll_protocol = htons(ETH_P_IP);
    addresses_[i].sll_halen = ETH_ALEN;
    messages_[i].msg_hdr.msg_name = &addresses_[i];
    messages_[i].msg_hdr.msg_namelen = sizeof(sockaddr_ll);
    messages_[i].msg_hdr.msg_iov = &buffers_[i];
    messages_[i].msg_hdr.msg_iovlen = 1;
  }
}

void TransmitBatch::add(int ifindex, FrameSlot& slot) {
  addresses_[count_].sll_ifindex = ifindex;
  buffers_[count_] = {slot.bytes.data(), FrameSlot::kHeader + slot.length};
  ++count_;
}

std::uint64_t TransmitBatch::flush() {
  std::uint64_t refused = 0;
  std::size_t sent = 0;
  while (sent < count_) {
    const int result = sendmmsg(socket_.get(), &messages_[sent], static_cast<unsigned>(count_ - sent), 0);
    if (result > 0) {
      sent += static_cast<std::size_t>(result);
      continue;
    }
    if (errno == EINTR) continue;
    ++refused;  // the first unsent message failed; those behind it may still go
    ++sent;
  }
  count_ = 0;
  return refused;
}

}  // namespace fabric
