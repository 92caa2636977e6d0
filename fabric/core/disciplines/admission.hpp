// What every port has, whatever its queue (queue.hpp): limits, random drop and an ECN threshold. A FIFO with them knows
// departures on arrival.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/disciplines/drop_tail.hpp"
#include "core/disciplines/ecn_threshold.hpp"
#include "core/disciplines/queue_length.hpp"
#include "core/disciplines/random_drop.hpp"
#include "core/packet.hpp"
#include "core/random.hpp"

namespace fabric {

enum class Admitted : std::uint8_t { full, early, yes };

struct Admission {
  DropTail tail;
  RandomDrop random;
  EcnThreshold ecn;

  [[nodiscard]] Admitted admits(const Packet& packet, QueueLength queue, Random& generator) const {
    if (!tail.has_room(queue, packet.size_bytes)) return Admitted::full;
    if (random.places != 0 && random.refuses(tail.places_left(queue), generator)) return Admitted::early;
    return Admitted::yes;
  }

  // Whether a queue below its limit in packets takes every packet. Most packets then need no check.
  [[nodiscard]] bool only_counts_packets() const {
    return tail.limit_bytes == 0 && random.places == 0 && ecn.pkts == 0;
  }
};

// The number that sets up one of them. Nothing reads the record while packets pass.
struct AdmissionSetting {
  std::string_view name;  // of its field in LinkSpec (model/spec.py)
  bool in_hosts;          // whether hosts' own queues have it, too
  void (*set)(Admission&, double number);
};

// Throws std::invalid_argument for a number that is no count of 32 bits.
inline std::uint32_t as_count(double number) {
  constexpr double most = std::numeric_limits<std::uint32_t>::max();
  if (number >= 0 && number <= most && std::floor(number) == number) return static_cast<std::uint32_t>(number);
  throw std::invalid_argument("a setting of a queue must be a count of 32 bits, not " + std::to_string(number));
}

inline constexpr std::array kAdmissionSettings{
    AdmissionSetting{"ecn_pkts", true, [](Admission& of, double pkts) { of.ecn.pkts = as_count(pkts); }},
    AdmissionSetting{"random_pkts", false, [](Admission& of, double pkts) { of.random.places = as_count(pkts); }},
};

// Throws std::invalid_argument for another name.
inline const AdmissionSetting& admission_setting(std::string_view name) {
  for (const AdmissionSetting& setting : kAdmissionSettings) {
    if (setting.name == name) return setting;
  }
  throw std::invalid_argument("no port has the setting '" + std::string(name) + "'");
}

}  // namespace fabric
