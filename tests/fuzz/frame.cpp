// Any bytes as an Ethernet frame of a host: the core parses it and writes an ECN mark into it.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "check.hpp"
#include "realtime/frame.hpp"

using namespace fabric;

namespace {

// RFC 1071, of the header without options.
bool checksum_is_right(const std::vector<std::uint8_t>& frame) {
  std::uint32_t sum = 0;
  for (std::size_t i = ETH_HLEN; i < ETH_HLEN + 20; i += 2) sum += detail::load16(frame.data() + i);
  while (sum >> 16 != 0) sum = (sum & 0xFFFFU) + (sum >> 16);
  return sum == 0xFFFFU;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> frame(data, data + size);  // of its exact size, so that overreads are found
  const bool tagged = has_vlan_tag(frame);
  const auto flow = five_tuple(frame);
  check(!(tagged && flow), "a tagged frame is not one of IPv4");
  if (!flow) return 0;
  check((flow->sport == 0 && flow->dport == 0) || flow->proto == IPPROTO_TCP || flow->proto == IPPROTO_UDP,
        "only TCP and UDP have ports");
  std::vector<std::uint8_t> marked = frame;
  mark_ce(marked.data());
  check(ecn_of(marked.data()) == Ecn::ce, "a marked frame says so");
  check(dscp_of(marked.data()) == dscp_of(frame.data()), "a mark leaves the class of service alone");
  check(five_tuple(marked) == flow, "a mark leaves the flow alone");
  if (checksum_is_right(frame)) check(checksum_is_right(marked), "a mark keeps the header's checksum right");
  for (std::size_t i = 0; i < frame.size(); ++i) {
    const bool written = i == ETH_HLEN + 1 || i == ETH_HLEN + 10 || i == ETH_HLEN + 11;
    check(written || frame[i] == marked[i], "a mark changes three bytes at most");
  }
  return 0;
}
