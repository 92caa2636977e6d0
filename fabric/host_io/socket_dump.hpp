// What the kernel knows of many hosts' TCP sockets and MPTCP subflows, in one call: INET_DIAG dumps over
// one netlink socket per host, into fixed records. Structs are read only as far as the kernel's copy reaches.
// Source: include/uapi/linux/{inet_diag,tcp,mptcp}.h, net/ipv4/{inet,tcp}_diag.c, net/mptcp/diag.c.
#pragma once

#include <linux/netlink.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "realtime/file_descriptor.hpp"

namespace fabric {

// Fields that a kernel does not report are 0. Addresses and ports are in host byte order.
struct SocketRecord {
  std::uint64_t bytes_acked;
  std::uint64_t delivery_rate;  // bytes per second
  std::uint64_t busy_us;        // since it began, with something unacknowledged or unsent
  std::uint64_t rwnd_limited_us;
  std::uint32_t host;           // position among the dump's hosts
  std::uint32_t laddr;
  std::uint32_t raddr;
  std::uint32_t token;  // of the MPTCP connection it belongs to, 0 for none
  std::uint32_t flags;  // MPTCP_SUBFLOW_FLAG_*
  std::uint32_t cwnd_pkts;
  std::uint32_t ssthresh_pkts;
  std::uint32_t srtt_us;
  std::uint32_t rttvar_us;
  std::uint32_t min_rtt_us;
  std::uint32_t retransmits;  // segments retransmitted since the connection began
  std::uint32_t unacked_pkts;
  std::uint32_t delivered_pkts;
  std::uint32_t notsent_bytes;
  std::uint16_t lport;
  std::uint16_t rport;
  std::uint8_t state;
  std::uint8_t cc;  // position among the names of congestion controls
  std::array<std::uint8_t, 6> unused;
};
static_assert(sizeof(SocketRecord) == 104);

using Bytes = std::span<const std::uint8_t>;

// Names of congestion controls, numbered in order of appearance.
class NameList {
 public:
  std::uint8_t number(std::string_view name);
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
};

// Decodes struct inet_diag_msg and its attributes into `record` (all but `host`); false for a socket without
// TCP information (one in TIME_WAIT), which is no sender any more. Throws std::invalid_argument when a
// length does not fit.
bool parse_socket(Bytes message, NameList& ccs, SocketRecord& record);

// What follows the header of each message of a netlink datagram. `handle(header, payload)` returns false to end.
// Throws std::invalid_argument when a length does not fit.
template <class Handler>
bool for_each_message(Bytes datagram, Handler handle) {
  while (datagram.size() >= sizeof(nlmsghdr)) {
    nlmsghdr header{};
    std::memcpy(&header, datagram.data(), sizeof header);
    if (header.nlmsg_len < sizeof(nlmsghdr) || header.nlmsg_len > datagram.size()) {
      throw std::invalid_argument("netlink message of " + std::to_string(header.nlmsg_len) + " bytes");
    }
    const Bytes payload = datagram.subspan(sizeof(nlmsghdr), header.nlmsg_len - sizeof(nlmsghdr));
    const std::size_t padded = (std::size_t{header.nlmsg_len} + 3) & ~std::size_t{3};
    datagram = datagram.subspan(std::min(padded, datagram.size()));
    if (!handle(header, payload)) return false;
  }
  return true;
}

class SocketDump {
 public:
  struct Host {
    std::string name;
    FileDescriptor socket;  // NETLINK_SOCK_DIAG, of the host's namespace
  };

  // `request` is a struct inet_diag_req_v2 with its attributes, the same for all hosts.
  SocketDump(std::vector<Host> hosts, std::vector<std::uint8_t> request);
  SocketDump(const SocketDump&) = delete;
  SocketDump& operator=(const SocketDump&) = delete;

  // The sockets the request selects, host by host. Throws std::runtime_error naming the host when the kernel
  // refuses, does not answer, or never gives a consistent dump.
  std::vector<SocketRecord> read();

  [[nodiscard]] const std::vector<std::string>& cc_names() const { return ccs_.names(); }

 private:
  void read_host(std::uint32_t host, std::vector<SocketRecord>& found);
  bool dump(std::uint32_t host, std::vector<SocketRecord>& found);
  bool take(Bytes datagram, std::uint32_t host, std::vector<SocketRecord>& found);
  void send_request(const FileDescriptor& socket);
  Bytes receive(const FileDescriptor& socket);

  std::vector<Host> hosts_;
  std::vector<std::uint8_t> request_;
  std::vector<std::uint8_t> buffer_;
  NameList ccs_;
  std::uint32_t seq_ = 0;
  bool interrupted_ = false;
  std::size_t usual_count_ = 0;
};

}  // namespace fabric
