// Opening the sockets of flows, each in the network namespace of its host, and ending them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "realtime/file_descriptor.hpp"

namespace fabric {

struct Address {
  std::uint32_t ip = 0;  // host byte order, as everywhere in the core
  std::uint16_t port = 0;
  friend bool operator==(const Address&, const Address&) = default;
  friend auto operator<=>(const Address&, const Address&) = default;
};

std::string to_text(Address address);

struct SocketOptions {
  std::string congestion_control;  // of both ends; empty leaves the namespace's own
  bool mptcp = false;
  std::uint8_t dscp = 0;  // of all packets of the connection, both ways
  friend bool operator==(const SocketOptions&, const SocketOptions&) = default;
};

// Moves the calling thread through the network namespaces of processes, and finally back to its own.
class NamespaceVisit {
 public:
  NamespaceVisit();
  NamespaceVisit(const NamespaceVisit&) = delete;
  NamespaceVisit& operator=(const NamespaceVisit&) = delete;
  ~NamespaceVisit();
  void enter(int pid) const;

 private:
  FileDescriptor home_;
};

// Gives the calling thread a table of descriptors of its own, with the standard streams and `kept` in it.
void keep_own_descriptors(std::vector<int> kept);

// Both open in the calling thread's namespace, non-blocking. Both throw std::system_error with the attempt.
FileDescriptor open_listener(std::uint16_t port, const SocketOptions& options);
FileDescriptor open_client(Address source, const SocketOptions& options);

// Starts to connect: 0, or the errno of a refusal on the spot.
int start_connect(int socket, Address destination);

// The next connection of a listener and who it comes from; -1 with errno when there is none.
int accept_from(int listener, Address& peer);

// Segments that a sender has retransmitted so far, on all subflows it has; kUnknownCount if the kernel does not say.
inline constexpr std::int64_t kUnknownCount = -1;
std::int64_t retransmitted_segments(int socket, bool mptcp);

// Reading is reported as possible once this many bytes wait (SO_RCVLOWAT), or the other end has ended. Kernels without
// this for MPTCP report every packet.
void read_in_chunks(int socket, int bytes);

// The pending error of a socket, 0 for none.
int take_error(int socket);

// Resets the connection, so that neither end goes on sending what is queued or waits in TIME_WAIT.
void abort_connection(int socket);

// What the hosts' kernels must know of a flow to stamp its rank on every packet: its size, in socket storage that a
// BPF program of the sender reads (engines/emulation/congestion/bpf/stamp.bpf.c has the same structure).
struct FlowSize {
  std::uint64_t size_bytes = 0;  // 0: without end
  std::uint64_t by_sent = 0;     // 1: the rank is what was sent, not what remains
};

// Writes into the map of type BPF_MAP_TYPE_SK_STORAGE. Throws std::system_error.
void store_size(int map, int socket, FlowSize size);

}  // namespace fabric
