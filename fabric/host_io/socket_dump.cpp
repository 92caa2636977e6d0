#include "host_io/socket_dump.hpp"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/mptcp.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace fabric {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;  // the kernel fills 32 kB at most
constexpr int kTries = 5;
constexpr int kPatienceSeconds = 5;
constexpr std::uint16_t kTypeMask = 0x3FFF;

constexpr std::size_t align4(std::size_t length) { return (length + 3) & ~std::size_t{3}; }

// The value at `offset`, or 0 where the kernel's struct is shorter.
template <class T>
T field(Bytes data, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= data.size()) std::memcpy(&value, data.data() + offset, sizeof value);
  return value;
}

template <class Handler>
void for_each_attribute(Bytes data, Handler handle) {
  while (data.size() >= sizeof(nlattr)) {
    const auto length = field<std::uint16_t>(data, 0);
    if (length < sizeof(nlattr) || length > data.size()) {
      throw std::invalid_argument("netlink attribute of " + std::to_string(length) + " bytes where " +
                                  std::to_string(data.size()) + " are left");
    }
    const auto type = static_cast<std::uint16_t>(field<std::uint16_t>(data, 2) & kTypeMask);
    handle(type, data.subspan(sizeof(nlattr), length - sizeof(nlattr)));
    data = data.subspan(std::min(align4(length), data.size()));
  }
}

// INET_DIAG_INFO is struct tcp_info.
void read_info(Bytes info, SocketRecord& record) {
  record.bytes_acked = field<std::uint64_t>(info, offsetof(tcp_info, tcpi_bytes_acked));
  record.delivery_rate = field<std::uint64_t>(info, offsetof(tcp_info, tcpi_delivery_rate));
  record.busy_us = field<std::uint64_t>(info, offsetof(tcp_info, tcpi_busy_time));
  record.rwnd_limited_us = field<std::uint64_t>(info, offsetof(tcp_info, tcpi_rwnd_limited));
  record.cwnd_pkts = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_snd_cwnd));
  record.ssthresh_pkts = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_snd_ssthresh));
  record.srtt_us = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_rtt));
  record.rttvar_us = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_rttvar));
  record.min_rtt_us = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_min_rtt));
  record.retransmits = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_total_retrans));
  record.unacked_pkts = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_unacked));
  record.delivered_pkts = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_delivered));
  record.notsent_bytes = field<std::uint32_t>(info, offsetof(tcp_info, tcpi_notsent_bytes));
}

// INET_DIAG_ULP_INFO: the part of MPTCP's that says whose subflow this is.
void read_ulp(Bytes ulp, SocketRecord& record) {
  for_each_attribute(ulp, [&](std::uint16_t type, Bytes value) {
    if (type != INET_ULP_INFO_MPTCP) return;
    for_each_attribute(value, [&](std::uint16_t inner, Bytes number) {
      if (inner == MPTCP_SUBFLOW_ATTR_TOKEN_LOC) record.token = field<std::uint32_t>(number, 0);
      if (inner == MPTCP_SUBFLOW_ATTR_FLAGS) record.flags = field<std::uint32_t>(number, 0);
    });
  });
}

void set_patience(const FileDescriptor& socket) {
  const timeval patience{kPatienceSeconds, 0};
  checked_call(setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience),
               "setting a receive timeout");
}

// Throws with the kernel's errno unless it is 0; the answer's first word is its negative.
void check_answer(Bytes answer, const char* what) {
  const auto code = field<std::int32_t>(answer, 0);
  if (code < 0) throw std::system_error(-code, std::generic_category(), what);
}

}  // namespace

std::uint8_t NameList::number(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return static_cast<std::uint8_t>(found - names_.begin());
  if (names_.size() > 0xFF) throw std::length_error("more than 256 congestion controls");
  names_.emplace_back(name);
  return static_cast<std::uint8_t>(names_.size() - 1);
}

bool parse_socket(Bytes message, NameList& ccs, SocketRecord& record) {
  if (message.size() < sizeof(inet_diag_msg)) {
    throw std::invalid_argument("inet_diag message of " + std::to_string(message.size()) + " bytes");
  }
  record = {};
  const Bytes id = message.subspan(offsetof(inet_diag_msg, id));
  record.state = message[offsetof(inet_diag_msg, idiag_state)];
  record.lport = ntohs(field<std::uint16_t>(id, offsetof(inet_diag_sockid, idiag_sport)));
  record.rport = ntohs(field<std::uint16_t>(id, offsetof(inet_diag_sockid, idiag_dport)));
  record.laddr = ntohl(field<std::uint32_t>(id, offsetof(inet_diag_sockid, idiag_src)));
  record.raddr = ntohl(field<std::uint32_t>(id, offsetof(inet_diag_sockid, idiag_dst)));
  bool informed = false;
  for_each_attribute(message.subspan(sizeof(inet_diag_msg)), [&](std::uint16_t type, Bytes value) {
    if (type == INET_DIAG_INFO) {
      read_info(value, record);
      informed = true;
    } else if (type == INET_DIAG_CONG) {
      const auto* text = reinterpret_cast<const char*>(value.data());
      record.cc = ccs.number({text, strnlen(text, value.size())});
    } else if (type == INET_DIAG_ULP_INFO) {
      read_ulp(value, record);
    }
  });
  return informed;
}

SocketDump::SocketDump(std::vector<Host> hosts, std::vector<std::uint8_t> request)
    : hosts_(std::move(hosts)), request_(sizeof(nlmsghdr) + request.size()), buffer_(kBufferBytes) {
  std::copy(request.begin(), request.end(), request_.begin() + sizeof(nlmsghdr));
  for (const Host& host : hosts_) set_patience(host.socket);
}

std::vector<SocketRecord> SocketDump::read() {
  std::vector<SocketRecord> found;
  found.reserve(usual_count_);
  for (std::uint32_t host = 0; host < hosts_.size(); ++host) {
    try {
      read_host(host, found);
    } catch (const std::exception& error) {
      throw std::runtime_error("dumping the sockets of " + hosts_[host].name + ": " + error.what());
    }
  }
  usual_count_ = found.size() + found.size() / 8;
  return found;
}

void SocketDump::read_host(std::uint32_t host, std::vector<SocketRecord>& found) {
  const std::size_t first = found.size();
  for (int i = 0; i < kTries; ++i) {
    if (dump(host, found)) return;
    found.resize(first);
  }
  throw std::runtime_error("the kernel's table changed during each of " + std::to_string(kTries) + " dumps");
}

// Returns false if the kernel reports that its table changed meanwhile.
bool SocketDump::dump(std::uint32_t host, std::vector<SocketRecord>& found) {
  interrupted_ = false;
  send_request(hosts_[host].socket);
  while (take(receive(hosts_[host].socket), host, found)) {
  }
  return !interrupted_;
}

// The messages of one datagram; false after the last of the dump.
bool SocketDump::take(Bytes datagram, std::uint32_t host, std::vector<SocketRecord>& found) {
  return for_each_message(datagram, [&](const nlmsghdr& header, Bytes payload) {
    if (header.nlmsg_seq != seq_) return true;  // left over from a dump that failed
    interrupted_ |= (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
    if (header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR) {
      check_answer(payload, "the kernel refuses");
      return false;
    }
    SocketRecord record;
    if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY && parse_socket(payload, ccs_, record)) {
      record.host = host;
      found.push_back(record);
    }
    return true;
  });
}

void SocketDump::send_request(const FileDescriptor& socket) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(request_.size());
  header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  header.nlmsg_seq = ++seq_;
  std::memcpy(request_.data(), &header, sizeof header);
  checked_call(send(socket.get(), request_.data(), request_.size(), 0), "asking");
}

Bytes SocketDump::receive(const FileDescriptor& socket) {
  ssize_t length = -1;
  do {
    length = recv(socket.get(), buffer_.data(), buffer_.size(), MSG_TRUNC);
  } while (length < 0 && errno == EINTR);
  checked_call(length, "waiting for the answer");
  if (static_cast<std::size_t>(length) > buffer_.size()) {
    throw std::length_error("an answer of " + std::to_string(length) + " bytes in one piece");
  }
  return {buffer_.data(), static_cast<std::size_t>(length)};
}

}  // namespace fabric
