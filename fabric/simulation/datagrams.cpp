#include "simulation/datagrams.hpp"

#include <stdexcept>

namespace fabric {

namespace {

std::uint16_t packet_bytes(const TransportOptions& options) {
  return static_cast<std::uint16_t>(options.payload_bytes + options.header_bytes);
}

}  // namespace

std::vector<DatagramSource> datagram_sources(const TransportOptions& options, Network& network,
                                             const std::vector<DatagramConfig>& wanted) {
  std::vector<DatagramSource> out;
  for (const DatagramConfig& each : wanted) {
    if (each.rate_bps <= 0) throw std::invalid_argument("a constant rate must be above 0 bit/s");
    if (each.start < 0) throw std::invalid_argument("a flow starts before the simulation does");
    DatagramSource& source = out.emplace_back();
    source.source = each.path.source;
    source.destination = each.path.destination;
    source.hash = each.path.hash;
    source.path = network.router().path(source.source, source.destination, each.path.hash);
    if (source.path.empty()) throw std::invalid_argument("no path joins the ends of a subflow");
    source.packets = each.packets;
    source.start = each.start;
    source.dscp = checked_dscp(each.dscp);
    const std::int64_t bits = 8LL * packet_bytes(options);
    source.rate_bps = each.rate_bps;
    source.interval = bits * kSecond / each.rate_bps;
    source.rest = bits * kSecond % each.rate_bps;
  }
  return out;
}

Datagrams::Datagrams(Stack& stack, std::span<DatagramSource> sources, std::size_t partition)
    : stack_(stack), sources_(sources) {
  for (std::uint32_t i = 0; i < sources_.size(); ++i) {
    const DatagramSource& source = sources_[i];
    if (stack_.network.partitions().of_nic(source.source) != partition) continue;
    stack_.timers.schedule(Alarm::datagram, i, source.start);
  }
}

void Datagrams::send(std::uint32_t number, Time now) {
  DatagramSource& source = sources_[number];
  ++source.emitted;
  if (source.packets == 0 || source.emitted < source.packets) {
    stack_.timers.schedule(Alarm::datagram, number, source.next_after(now));
  }
  while (!source.held.empty() && source.held.front() <= now) source.held.pop_front();
  const Nic& nic = stack_.network.router().nics()[source.source];
  const bool in_order = nic.uplink == kNone || !stack_.network.port(nic.uplink).is_scheduled();
  // Where departures are not known, all that the host holds counts.
  const std::size_t held = in_order ? source.held.size() : stack_.network.port(nic.uplink).queued_pkts();
  if (held >= stack_.options.nic_queue_pkts) {
    ++source.refused;
    return;
  }
  const PacketId id = stack_.network.pool().acquire_or_throw();
  stack_.segments[id].carries = Carries::datagram;
  const Packet& packet = stack_.network.pool()[id];
  const std::uint32_t lost = stack_.lost_datagrams[number];
  stack_.send(id, {number, packet_bytes(stack_.options), Ecn::not_ect, source.dscp, Precedence::kLast}, source.path,
              source.source, source.destination, now);
  if (nic.uplink == kNone || !in_order || stack_.lost_datagrams[number] != lost) return;
  source.held.push_back(packet.due - stack_.network.port(packet.port()).delay());
}

}  // namespace fabric
