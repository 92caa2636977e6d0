#include "simulation/transport/socket_info.hpp"

#include <algorithm>

#include "simulation/transport/sender.hpp"

namespace fabric {

namespace {

void turn(bool& on, Time& total, Time& since, bool wanted, Time now) {
  if (on == wanted) return;
  if (on) total += now - since;
  since = now;
  on = wanted;
}

}  // namespace

void SocketInfo::update(Time now) {
  const bool busy = has_work();
  turn(sender_.busy, clock_.busy, clock_.busy_since, busy, now);
  turn(sender_.rwnd_limited, clock_.rwnd_limited, clock_.rwnd_limited_since, busy && waits_for_receiver(), now);
}

// Whether anything is unsent or unacknowledged. A connection of one subflow has all its data in that subflow's socket,
// as an application writes it; of several, each has the data bound to it.
bool SocketInfo::has_work() const {
  if (!connection_.open || !sender_.established) return false;
  if (sender_.board.outstanding() != 0 || !sender_.bound.empty()) return true;
  return !connection_.multipath() && connection_.next != connection_.segments;
}

// The congestion window has room, there is data to send, and the receiver has no room for it. The window of MPTCP is
// the connection's: data beyond it is bound to no subflow.
bool SocketInfo::waits_for_receiver() const {
  if (options().receive_buffer_pkts == 0 || connection_.multipath()) return false;
  return connection_.next != connection_.segments && connection_.next == connection_.window_end &&
         Sender(*this).has_window(false);
}

std::uint64_t SocketInfo::unsent_bytes() const {
  if (!connection_.open) return 0;
  if (connection_.multipath()) {
    std::uint64_t bytes = 0;
    sender_.bound.each([&](Seq dsn) { bytes += connection_.payload_of(dsn); });
    return bytes;
  }
  const std::uint64_t sent = std::uint64_t{connection_.next} * connection_.payload_bytes;
  const std::uint64_t left = connection_.size_bytes > sent ? connection_.size_bytes - sent : 0;
  if (options().send_buffer_pkts == 0) return left;
  const Seq held = connection_.next - connection_.una;
  const std::uint64_t free_pkts = options().send_buffer_pkts - std::min(held, options().send_buffer_pkts);
  const std::uint64_t room = free_pkts * connection_.payload_bytes;
  return connection_.size_bytes == 0 ? room : std::min(room, left);
}

}  // namespace fabric
