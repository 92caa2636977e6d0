#include "simulation/datagrams.hpp"

#include <stdexcept>

#include "simulation/flows.hpp"
#include "simulation/stack.hpp"

namespace fabric {

namespace {

std::uint16_t packet_bytes(const TransportOptions& options) {
  return static_cast<std::uint16_t>(options.payload_bytes + options.header_bytes);
}

}  // namespace

void add_datagrams(Tables& tables, Network& network, const DatagramConfig& wanted) {
  if (wanted.rate_bps <= 0) throw std::invalid_argument("a constant rate must be above 0 bit/s");
  if (wanted.start < 0) throw std::invalid_argument("a flow starts before the simulation does");
  DatagramSource& source = tables.datagrams.emplace_back();
  source.source = wanted.path.source;
  source.destination = wanted.path.destination;
  source.path = network.router().path(source.source, source.destination, wanted.path.hash);
  if (source.path.empty()) throw std::invalid_argument("no path joins the ends of a subflow");
  source.packets = wanted.packets;
  source.start = wanted.start;
  source.dscp = checked_dscp(wanted.dscp);
  const std::int64_t bits = 8LL * packet_bytes(tables.options);
  source.rate_bps = wanted.rate_bps;
  source.interval = bits * kSecond / wanted.rate_bps;
  source.rest = bits * kSecond % wanted.rate_bps;
}

void send_datagram(Stack& stack, std::uint32_t number, Time now) {
  DatagramSource& source = stack.datagrams[number];
  ++source.emitted;
  if (source.packets == 0 || source.emitted < source.packets) {
    stack.timers.schedule(Alarm::datagram, number, source.next_after(now));
  }
  while (!source.held.empty() && source.held.front() <= now) source.held.pop_front();
  if (source.held.size() >= stack.options.nic_queue_pkts) {
    ++source.refused;
    return;
  }
  const PacketId id = stack.network.pool().acquire_or_throw();
  stack.segments[id].carries = Carries::datagram;
  const Packet& packet = stack.network.pool()[id];
  const std::uint32_t lost = stack.lost_datagrams[number];
  stack.send(id, {number, packet_bytes(stack.options), Ecn::not_ect, source.dscp, Precedence::kLast}, source.path, source.source,
             source.destination, now);
  if (stack.network.router().nics()[source.source].uplink == kNone || stack.lost_datagrams[number] != lost) return;
  source.held.push_back(packet.due - stack.network.port(packet.port()).delay());
}

}  // namespace fabric
