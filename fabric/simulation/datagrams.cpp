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
  if (network_.router().nics()[source.source].uplink != kNone && is_full(source.path.ports[0], now)) {
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
  packet.take(network_.router().per_packet() ? network_.router().path(source.source, source.destination, 0) : source.path);
  network_.inject(id, now, *this);
}

}  // namespace fabric
