#include "simulation/datagrams.hpp"

#include <stdexcept>

#include "simulation/simulation.hpp"

namespace fabric {

void Simulation::add(const DatagramConfig& wanted) {
  if (wanted.rate_bps <= 0) throw std::invalid_argument("a constant rate must be above 0 bit/s");
  if (wanted.start < 0) throw std::invalid_argument("a flow starts before the simulation does");
  DatagramSource& source = datagrams_.emplace_back();
  source.source = wanted.path.source;
  source.destination = wanted.path.destination;
  source.path = network_.router().path(source.source, source.destination, wanted.path.hash);
  if (source.path.empty()) throw std::invalid_argument("no path joins the ends of a subflow");
  source.packets = wanted.packets;
  source.start = wanted.start;
  source.dscp = dscp_of(wanted.dscp);
  const std::int64_t bits = 8LL * (options_.payload_bytes + options_.header_bytes);
  source.rate_bps = wanted.rate_bps;
  source.interval = bits * kSecond / wanted.rate_bps;
  source.rest = bits * kSecond % wanted.rate_bps;
  ring(Alarm::datagram, static_cast<std::uint32_t>(datagrams_.size() - 1), wanted.start);
}

void Simulation::emit(std::uint32_t number, Time now) {
  DatagramSource& source = datagrams_[number];
  ++source.emitted;
  if (source.packets == 0 || source.emitted < source.packets) ring(Alarm::datagram, number, source.next_after(now));
  while (!source.held.empty() && source.held.front() <= now) source.held.pop_front();
  if (source.held.size() >= options_.nic_queue_pkts) {
    ++source.refused;
    return;
  }
  const PacketId id = descriptor();
  segments_[id].carries = Carries::datagram;
  Packet& packet = network_.pool()[id];
  packet.kind = Kind::packet;
  packet.owner = number;
  packet.size_bytes = static_cast<std::uint16_t>(options_.payload_bytes + options_.header_bytes);
  packet.ecn = Ecn::not_ect;
  packet.dscp = source.dscp & kDscpBits;
  lead(packet, source.path, source.source, source.destination);
  const Port& first = network_.port(packet.port());
  const std::uint32_t lost = source.lost;
  network_.inject(id, now, *this);
  if (network_.router().nics()[source.source].uplink != kNone && source.lost == lost) source.held.push_back(packet.due - first.delay());
}

}  // namespace fabric
