// What the kernel tells of a socket beside its window and round-trip time (tcp_get_info, net/ipv4/tcp.c).
#include <algorithm>

#include "simulation/simulation.hpp"

namespace fabric {

namespace {

void turn(bool& on, Time& total, Time& since, bool wanted, Time now) {
  if (on == wanted) return;
  if (on) total += now - since;
  since = now;
  on = wanted;
}

}  // namespace

// Whether it has anything unsent or unacknowledged. A connection of one subflow has all its data in that one's
// socket, as an application writes it; of several, each has what was bound to it.
bool Simulation::has_work(const Connection& connection, const Sender& sender) const {
  if (!connection.open || !sender.established) return false;
  if (sender.board.outstanding() != 0 || !sender.bound.empty()) return true;
  return !connection.multipath() && connection.next != connection.segments;
}

// Its own window has room, it has data to send, and the receiver has no room for that. MPTCP's window is the
// connection's: data beyond it is bound to no subflow.
bool Simulation::waits_for_receiver(std::uint32_t number) const {
  const Connection& connection = connections_[subflows_[number].connection];
  if (options_.receive_buffer_pkts == 0 || connection.multipath()) return false;
  return connection.next != connection.segments && connection.next == connection.window_end && has_window(number, false);
}

// To be called where either may have changed.
void Simulation::keep_time(std::uint32_t number, Time now) {
  Sender& sender = subflows_[number].sender;
  SocketClock& clock = clocks_[number];
  const bool busy = has_work(connections_[subflows_[number].connection], sender);
  turn(sender.busy, clock.busy, clock.busy_since, busy, now);
  turn(sender.rwnd_limited, clock.rwnd_limited, clock.rwnd_limited_since, busy && waits_for_receiver(number), now);
}

Time Simulation::busy(std::uint32_t number) const { return clocks_[number].busy_at(subflows_[number].sender, now_); }

Time Simulation::rwnd_limited(std::uint32_t number) const {
  return clocks_[number].rwnd_limited_at(subflows_[number].sender, now_);
}

// Payload in its socket that was not sent yet (tcpi_notsent_bytes). An application without end fills the send buffer;
// without a limit to that it is taken to write when there is room in the window.
std::uint64_t Simulation::unsent_bytes(std::uint32_t number) const {
  const Subflow& subflow = subflows_[number];
  const Connection& connection = connections_[subflow.connection];
  if (!connection.open) return 0;
  std::uint64_t bytes = 0;
  if (connection.multipath()) {
    subflow.sender.bound.each([&](Seq dsn) { bytes += connection.payload_of(dsn); });
    return bytes;
  }
  const std::uint64_t sent = std::uint64_t{connection.next} * connection.payload_bytes;
  const std::uint64_t left = connection.size_bytes > sent ? connection.size_bytes - sent : 0;
  if (options_.send_buffer_pkts == 0) return left;
  const Seq held = connection.next - connection.una;
  const std::uint64_t room = std::uint64_t{options_.send_buffer_pkts - std::min(held, options_.send_buffer_pkts)} * connection.payload_bytes;
  return connection.size_bytes == 0 ? room : std::min(room, left);
}

}  // namespace fabric
