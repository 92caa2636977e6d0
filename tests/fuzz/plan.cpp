// Network plans: a plan that works, with edits. It is refused, or it carries packets without a wild access, and every
// packet has one fate.
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "core/network.hpp"

using namespace fabric;

namespace {

class Reader {
 public:
  Reader(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return at_ >= size_; }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : data_[at_++]; }
  // Mostly small numbers, and those around the limits of 32 bits.
  std::uint32_t number() {
    const std::uint8_t first = byte();
    if (first < 0xF0) return first;
    const std::uint32_t wide = byte() | std::uint32_t{byte()} << 8 | std::uint32_t{byte()} << 16 | std::uint32_t{byte()} << 24;
    return first < 0xF8 ? wide : ~std::uint32_t{0} - (first - 0xF8U);
  }
  std::int64_t product() { return std::int64_t{number()} * (number() >> 1); }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

PortConfig usual_port() {
  PortConfig port;
  port.rate_bps = 10'000'000;
  port.delay = kMicrosecond;
  return port;
}

// A diamond: hosts 0 and 1 at the switches 2 and 5, between which there are 3 and 4.
struct Plan {
  std::vector<PortConfig> ports = std::vector<PortConfig>(12, usual_port());
  std::vector<NodeId> far_nodes = {2, 0, 5, 1, 3, 2, 4, 2, 5, 3, 5, 4};
  std::vector<Nic> nics = {{1, 2, 0, 0, 1}, {2, 5, 1, 2, 3}};
  std::size_t attachments = 2;
  std::vector<std::int32_t> fib = {-1, -1, -1, -1, -1, 0, 1, 2, 3, 4, 5, -1};
  std::vector<std::uint32_t> offsets = {0, 2, 3, 4, 5, 6, 8};
  std::vector<GroupMember> members = {{4, 1}, {6, 1}, {5, 1}, {8, 1}, {7, 1}, {10, 1}, {9, 1}, {11, 1}};
  std::uint8_t policy = 0;
  std::size_t max_packets = 256;

  [[nodiscard]] NetworkConfig config() const {
    return {ports, far_nodes, nics, ForwardingTable(attachments, fib, offsets, members), Policy{policy},
            PolicyParameters({{"gap_us", 500}, {"tau_us", 160}, {"d", 2}, {"m", 1}, {"cell_kb", 1}}), 7, max_packets, {}};
  }
};

template <class T>
T& pick(std::vector<T>& column, std::uint32_t at) {
  if (column.empty()) column.emplace_back();
  return column[at % column.size()];
}

void edit_port(Plan& plan, Reader& reader) {
  PortConfig& port = pick(plan.ports, reader.number());
  switch (reader.byte() % 7) {
    case 0: port.rate_bps = reader.product(); return;
    case 1: port.delay = reader.product(); return;
    case 2: port.admission.tail.limit_pkts = reader.number(); return;
    case 3: port.admission.tail.limit_bytes = reader.number(); return;
    case 4: port.admission.random.places = reader.number(); return;
    case 5: port.admission.ecn.pkts = reader.number(); return;
    default: port.discipline = reader.byte(); return;
  }
}

void edit_nic(Plan& plan, Reader& reader) {
  Nic& nic = pick(plan.nics, reader.number());
  const std::uint32_t value = reader.number();
  switch (reader.byte() % 5) {
    case 0: nic.ip = value; return;
    case 1: nic.attach_node = value; return;
    case 2: nic.attach = value; return;
    case 3: nic.uplink = value; return;
    default: nic.downlink = value; return;
  }
}

void edit(Plan& plan, Reader& reader) {
  switch (reader.byte() % 12) {
    case 0: return edit_port(plan, reader);
    case 1: return edit_nic(plan, reader);
    case 2: pick(plan.far_nodes, reader.number()) = reader.number(); return;
    case 3: pick(plan.fib, reader.number()) = static_cast<std::int32_t>(reader.number()); return;
    case 4: pick(plan.offsets, reader.number()) = reader.number(); return;
    case 5: pick(plan.members, reader.number()).port = reader.number(); return;
    case 6: pick(plan.members, reader.number()).paths = reader.number(); return;
    case 7: plan.policy = reader.byte() % 8; return;
    case 8: plan.attachments = reader.number(); return;
    case 9: plan.max_packets = reader.byte() < 0x80 ? reader.byte() : reader.number(); return;
    case 10: plan.fib.resize(reader.byte(), -1); return;
    default: plan.nics.push_back(pick(plan.nics, reader.number())); return;
  }
}

struct Hosts {
  Network& network;
  std::uint64_t delivered = 0;
  std::uint64_t dropped_count = 0;

  void deliver(PacketId id, Time) {
    ++delivered;
    network.pool().release(id);
  }
  void dropped(PacketId id, PortId, Time) {
    ++dropped_count;
    network.pool().release(id);
  }
  void alarm(PacketId, Time) {}
};

void send(Network& network, Hosts& hosts, Reader& reader, Time now) {
  const auto nics = static_cast<std::uint32_t>(network.router().nics().size());
  const NicId source = reader.byte() % nics;
  const NicId destination = reader.byte() % nics;
  const std::uint32_t flow = reader.number();
  const PacketId id = network.pool().acquire();
  if (id == kNone) return;
  Packet& packet = network.pool()[id];
  packet.kind = Kind::packet;
  packet.size_bytes = static_cast<std::uint16_t>(reader.number() | 1U);  // no host sends an empty packet
  packet.dscp = reader.byte() & kDscpBits;
  packet.ecn = Ecn(reader.byte() & 3);
  packet.owner = destination;
  try {
    network.route(id, source, destination, flow);
  } catch (const std::length_error&) {  // the plan has a loop
    network.pool().release(id);
    return;
  }
  network.inject(id, now, hosts);
}

void use(Network& network, Reader& reader) {
  Hosts hosts{network};
  Time now = 0;
  for (int i = 0; i < 64; ++i) {
    const std::uint8_t what = reader.byte();
    now += Time{reader.byte()} * kMicrosecond;
    network.run_until(now, hosts);
    try {
      if (what >= 0xE0) network.set_port_up(reader.number(), (what & 1) != 0, now, hosts);
      if (what >= 0xD0 && what < 0xE0) {
        network.settle(now);
        network.set_port_rate(reader.number(), std::int64_t{reader.number()} * 1000);
      }
    } catch (const std::out_of_range&) {
    } catch (const std::invalid_argument&) {
    }
    send(network, hosts, reader, now);
  }
  const Totals& totals = network.totals();
  check(hosts.delivered == totals.delivered, "deliveries are counted");
  check(hosts.dropped_count == totals.dropped + totals.lost, "drops are counted");
  check(totals.injected == totals.delivered + totals.dropped + totals.lost + network.pool().in_use(),
        "every packet has one fate");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Reader reader(data, size);
  Plan plan;
  for (int edits = reader.byte() % 8; edits > 0; --edits) edit(plan, reader);
  if (plan.max_packets > 4096) plan.max_packets |= std::size_t{1} << 40;  // refused, which saves memory
  try {
    Network network(plan.config());
    use(network, reader);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
