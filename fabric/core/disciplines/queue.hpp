// The seam of queues: what a port keeps, drops, marks and sends next, the same for simulated packets and real frames.
// A queue is a class, in a file that ends with `template QueueKind kind_of<...>();` (queued_port.hpp), with
//     static constexpr std::string_view kName = "...";       // of `--discipline`
//     bool arrive(PacketId, PortNow&);                       // keeps the packet, or returns false and it is dropped
//     PacketId next(PortNow&);                               // removes the packet to send now; kNone: it is empty
// and, if it has use for them,
//     static constexpr std::array kSettings{...};            // and a constructor that takes QueueSettings
//     bool make_room(PacketId newcomer, PortNow&);           // the port is full: pushes packets out; false: it has none
//     bool has_room(const Packet& newcomer, QueueLength, std::uint64_t switch_bytes) const;  // a limit by what this
//                                                            // and all such ports of the switch hold
//     static constexpr bool kReadsRank = true;               // every packet has a Precedence, and hosts write its rank
//     static constexpr bool kReadsFlow = true;               // every packet has a Precedence, for its flow
//     static constexpr std::size_t kFlowBytes = ...;         // it holds so many for each of its setting `flows`
//     static constexpr bool kTrims = true;                   // it trims packets, which the transport must be able to tell
//     static constexpr bool kLossless = true;                // ports stop one another (pause_frames.hpp), hosts' too
//     static constexpr bool kMarks = true;                   // it marks, and hosts are ECN-capable; or a setting `ecn`
// The port's own limits, random drop and ECN threshold (admission.hpp) come first: `arrive` gets what has room. The
// packet in transmission is no longer in the queue. A queue may use the `next_in_slot` of its packets, and reads in
// `due` when each arrived.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/packet.hpp"
#include "core/port.hpp"
#include "core/random.hpp"
#include "core/units.hpp"

namespace fabric {

// A number that sets up a queue. The option, its check, the label and the documentation follow from it.
struct QueueSetting {
  std::string_view name;  // ends in its unit, if it has one
  std::string_view unit;
  double least = 0;
  double most = 0;
  double usual = 0;
  bool whole = false;
  std::string_view words;
};

// The values of all settings that a queue declares, in their order.
class QueueSettings {
 public:
  // Throws std::invalid_argument for a value out of its range.
  QueueSettings(std::span<const QueueSetting> declared, std::vector<double> values)
      : declared_(declared), values_(std::move(values)) {
    for (std::size_t i = 0; i < declared_.size(); ++i) check(declared_[i], values_.at(i));
  }

  [[nodiscard]] double operator[](std::string_view name) const {
    for (std::size_t i = 0; i < declared_.size(); ++i) {
      if (declared_[i].name == name) return values_[i];
    }
    throw std::logic_error("a queue reads the setting '" + std::string(name) + "', which it does not declare");
  }
  [[nodiscard]] Time us(std::string_view name) const {
    return static_cast<Time>((*this)[name] * static_cast<double>(kMicrosecond));
  }
  [[nodiscard]] std::uint32_t count(std::string_view name) const { return static_cast<std::uint32_t>((*this)[name]); }
  [[nodiscard]] bool on(std::string_view name) const { return (*this)[name] != 0; }

 private:
  static void check(const QueueSetting& of, double value) {
    const bool fits = value >= of.least && value <= of.most && (!of.whole || std::floor(value) == value);
    if (!fits) throw std::invalid_argument("a queue's " + std::string(of.name) + " cannot be " + std::to_string(value));
  }

  std::span<const QueueSetting> declared_;
  std::vector<double> values_;
};

// Settings by their names; others have their usual values. Throws std::invalid_argument for one that is not declared, or
// out of its range; `whose` names who declares them.
inline QueueSettings settings_of(const std::string& whose, std::span<const QueueSetting> declared,
                                 std::map<std::string, double> given) {
  std::vector<double> values;
  for (const QueueSetting& setting : declared) {
    const auto value = given.extract(std::string(setting.name));
    values.push_back(value ? value.mapped() : setting.usual);
  }
  if (given.empty()) return {declared, std::move(values)};
  throw std::invalid_argument(whose + " has no setting '" + given.begin()->first + "'");
}

// A port at one instant, as its queue sees it and acts on it.
class PortNow {
 public:
  // Packets that the queue drops join `dropped`.
  PortNow(PacketPool& packets, Port& port, std::vector<PacketId>& dropped, Time when)
      : pool(packets), random(port.random_), now(when), rate_bps(port.config_.rate_bps), port_(port), dropped_(dropped) {}

  PacketPool& pool;
  Random& random;
  const Time now;
  const std::int64_t rate_bps;

  [[nodiscard]] Time waited(PacketId id) const { return now - pool[id].due; }

  // Drops a packet that the queue has just removed, although the port had room for it; for a newcomer `arrive` returns
  // false instead.
  void drop(PacketId id) {
    ++port_.early_drops_;
    remove(id);
  }
  // Drops a packet that the queue has removed to make room for a newcomer.
  void push_out(PacketId id) {
    ++port_.pushed_out_;
    remove(id);
  }
  // Cuts a packet that the queue keeps to so many bytes. Its content is not cut, so only simulated hosts can tell.
  void trim(PacketId id, std::uint16_t bytes) {
    port_.accepted_bytes_ -= pool[id].size_bytes - std::uint64_t{bytes};
    pool[id].size_bytes = bytes;
  }
  // Marks the packet, unless it is marked already; false if it is not ECN-capable (RFC 3168, section 5).
  [[nodiscard]] bool mark(PacketId id) {
    Packet& packet = pool[id];
    if (packet.ecn == Ecn::not_ect) return false;
    if (packet.ecn != Ecn::ce) ++port_.marks_;
    packet.ecn = Ecn::ce;
    return true;
  }

 private:
  void remove(PacketId id) {
    --port_.queued_;
    port_.accepted_bytes_ -= pool[id].size_bytes;
    ++port_.drops_;
    dropped_.push_back(id);
  }

  Port& port_;
  std::vector<PacketId>& dropped_;
};

}  // namespace fabric
