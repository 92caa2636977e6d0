// Opening the sockets of flows, each in the network namespace of its host, and ending them.
#pragma once

#include <cstdint>
#include <functional>
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
};

// Runs `visit(host)` for every host in the network namespace of process `pids[host]`, on a thread that is
// thrown away afterwards: the caller's namespace never changes. The first exception ends it and is thrown here.
void in_namespaces(const std::vector<int>& pids, const std::function<void(std::size_t host)>& visit);

// Both open in the calling thread's namespace, non-blocking. Both throw std::system_error with the attempt.
FileDescriptor open_listener(std::uint16_t port, const SocketOptions& options);
FileDescriptor open_client(Address source, const SocketOptions& options);

// Starts to connect: 0, or the errno of a refusal on the spot.
int start_connect(int socket, Address destination);

// The next connection of a listener and who it comes from; -1 with errno when there is none.
int accept_from(int listener, Address& peer);

// The pending error of a socket, 0 for none.
int take_error(int socket);

// Resets the connection, so that neither end goes on sending what is queued or waits in TIME_WAIT.
void abort_connection(int socket);

}  // namespace fabric
