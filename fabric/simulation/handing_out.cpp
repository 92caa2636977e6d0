// Which of a connection's subflows carries what: schedulers/, and how they are asked.
#include <algorithm>

#include "simulation/simulation.hpp"

namespace fabric {

namespace {

// Linux grows a socket's buffer to twice its window, counted with the overhead of packets it allocates for
// (tcp_sndbuf_expand, net/ipv4/tcp_input.c): as packets are, that is three windows.
constexpr double kWindowsHeld = 3;
// net.ipv4.tcp_pacing_ss_ratio and tcp_pacing_ca_ratio.
constexpr double kPacedInSlowStart = 2.0;
constexpr double kPaced = 1.2;

}  // namespace

// Gives data to subflows until none takes any.
void Simulation::hand_out(std::uint32_t number, Time now) {
  Connection& connection = connections_[number];
  if (connection.count == 1) return send_all(connection.first, now);
  connection.blocked = false;
  views_.resize(connection.count);
  for (std::uint32_t i = 0; i < connection.count; ++i) views_[i] = view(connection.first + i);
  if (is_early(connection)) {
    bind(connection);
    for (std::uint32_t i = 0; i < connection.count; ++i) {
      if (!subflows_[connection.first + i].sender.busy) keep_time(connection.first + i, now);
      send_all(connection.first + i, now);
    }
    return;
  }
  for (;;) {
    const std::uint32_t chosen = options_.scheduler->choose(views_, connection.last_chosen);
    if (chosen == kNone) return;
    if (send_one(connection.first + chosen, now)) {
      connection.last_chosen = chosen;
    } else {
      views_[chosen].takes = false;
    }
  }
}

SubflowView Simulation::view(std::uint32_t number) {
  Sender& sender = subflows_[number].sender;
  const PathState& path = paths_[number];
  SubflowView out{sender.established, path.rtt_s, 0, 0};
  if (options_.scheduler->burst_bytes == 0) return out;
  sender.most_held = std::max(sender.most_held, kWindowsHeld * std::max(path.window, options_.initial_window));
  if (options_.subflow_buffer_pkts != 0) {
    sender.most_held = std::min(sender.most_held, static_cast<double>(options_.subflow_buffer_pkts));
  }
  const bool slow_start = sender.ssthresh == 0 || path.window < sender.ssthresh;
  out.held_pkts = static_cast<double>(sender.bound.size()) + sender.board.outstanding();
  out.rate_pps = path.rtt_s > 0 ? (slow_start ? kPacedInSlowStart : kPaced) * path.window / path.rtt_s : 0;
  out.takes = sender.established && out.held_pkts < sender.most_held;
  return out;
}

// Data is bound to subflows as long as those have buffer.
void Simulation::bind(Connection& connection) {
  while (connection.has_new(options_.send_buffer_pkts)) {
    if (connection.burst_left == 0 || !views_[connection.last_chosen].takes) {
      const std::uint32_t chosen = options_.scheduler->choose(views_, connection.last_chosen);
      if (chosen == kNone) return;
      connection.last_chosen = chosen;
      connection.burst_left = std::max(1U, options_.scheduler->burst_bytes / options_.payload_bytes);
    }
    SubflowView& chosen = views_[connection.last_chosen];
    Sender& sender = subflows_[connection.first + connection.last_chosen].sender;
    sender.bound.push(connection.next++);
    --connection.burst_left;
    chosen.held_pkts += 1;
    chosen.takes = chosen.held_pkts < sender.most_held;
  }
}

}  // namespace fabric
