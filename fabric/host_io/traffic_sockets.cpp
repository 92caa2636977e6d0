#include "host_io/traffic_sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/mptcp.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "realtime/file_descriptor.hpp"

namespace fabric {

namespace {

constexpr int kMptcp = 262;  // IPPROTO_MPTCP, which older C libraries do not name
constexpr int kSolMptcp = 284;
constexpr std::size_t kMostSubflows = 64;
// A listener sees all joins of a connection's subflows at once, besides the connection itself.
constexpr int kBacklog = 256;

sockaddr_in to_sockaddr(Address address) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(address.port);
  out.sin_addr.s_addr = htonl(address.ip);
  return out;
}

FileDescriptor open_bound(Address local, const SocketOptions& options) {
  const char* kind = options.mptcp ? "an MPTCP socket" : "a TCP socket";
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, options.mptcp ? kMptcp : 0),
                        std::string("opening ") + kind);
  const int on = 1;
  checked_call(setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "setting SO_REUSEADDR");
  if (const std::string& cc = options.congestion_control; !cc.empty()) {
    checked_call(
        setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, cc.data(), static_cast<socklen_t>(cc.size())),
        "setting congestion control " + cc);
  }
  if (options.dscp != 0) {
    const int tos = options.dscp << 2;
    checked_call(setsockopt(socket.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos), "setting DSCP " + std::to_string(options.dscp));
  }
  const sockaddr_in address = to_sockaddr(local);
  checked_call(bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
               "binding " + to_text(local));
  return socket;
}

}  // namespace

std::string to_text(Address address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const in_addr ip{htonl(address.ip)};
  inet_ntop(AF_INET, &ip, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(address.port);
}

NamespaceVisit::NamespaceVisit()
    : home_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), "opening /proc/thread-self/ns/net") {}

NamespaceVisit::~NamespaceVisit() { setns(home_.get(), CLONE_NEWNET); }

void NamespaceVisit::enter(int pid) const {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  const FileDescriptor space(open(path.c_str(), O_RDONLY | O_CLOEXEC), "opening " + path);
  checked_call(setns(space.get(), CLONE_NEWNET), "setns into " + path);
}

void keep_own_descriptors(std::vector<int> kept) {
  checked_call(unshare(CLONE_FILES), "unshare of the table of descriptors");
  std::sort(kept.begin(), kept.end());
  unsigned first = 3;
  for (const int fd : kept) {
    const auto here = static_cast<unsigned>(fd);
    if (here > first) checked_call(close_range(first, here - 1, 0), "close_range");
    first = here + 1;
  }
  checked_call(close_range(first, ~0U, 0), "close_range");
}

// On every address, because subflows of a dual-homed host's connections join at its other ones.
FileDescriptor open_listener(std::uint16_t port, const SocketOptions& options) {
  const Address anywhere{INADDR_ANY, port};
  FileDescriptor socket = open_bound(anywhere, options);
  checked_call(listen(socket.get(), kBacklog), "listening at " + to_text(anywhere));
  return socket;
}

FileDescriptor open_client(Address source, const SocketOptions& options) { return open_bound(source, options); }

int start_connect(int socket, Address destination) {
  const sockaddr_in address = to_sockaddr(destination);
  const int result = connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return result == 0 || errno == EINPROGRESS ? 0 : errno;
}

int accept_from(int listener, Address& peer) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  const int socket = accept4(listener, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
  peer = {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
  return socket;
}

int take_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  checked_call(getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size), "asking for a socket's error");
  return error;
}

std::int64_t retransmitted_segments(int socket, bool mptcp) {
  struct {
    mptcp_subflow_data asked{};
    std::array<tcp_info, kMostSubflows> subflows{};
  } of;
  of.asked.size_subflow_data = sizeof of.asked;
  of.asked.size_user = sizeof of.subflows[0];
  socklen_t size = sizeof of;
  if (mptcp && getsockopt(socket, kSolMptcp, MPTCP_TCPINFO, &of, &size) == 0) {
    auto* const end = of.subflows.begin() + std::min<std::size_t>(of.asked.num_subflows, kMostSubflows);
    return std::accumulate(of.subflows.begin(), end, std::int64_t{0},
                           [](std::int64_t sum, const tcp_info& each) { return sum + each.tcpi_total_retrans; });
  }
  // Also of MPTCP that fell back to TCP.
  tcp_info info{};
  size = sizeof info;
  const bool known = getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) == 0;
  return known ? std::int64_t{info.tcpi_total_retrans} : kUnknownCount;
}

void read_in_chunks(int socket, int bytes) {
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);  // it saves CPU time, nothing depends on it
}

void abort_connection(int socket) {
  sockaddr nobody{};
  nobody.sa_family = AF_UNSPEC;
  connect(socket, &nobody, sizeof nobody);  // fails if the socket was never connected, which does no harm
}

void store_size(int map, int socket, FlowSize size) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<std::uint32_t>(map);
  attributes.key = reinterpret_cast<std::uintptr_t>(&socket);
  attributes.value = reinterpret_cast<std::uintptr_t>(&size);
  attributes.flags = BPF_ANY;
  checked_call(static_cast<int>(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attributes, sizeof attributes)),
               "storing a flow's size with its socket");
}

}  // namespace fabric
