// A port whose queue (disciplines/queue.hpp) chooses the next packet when the one before has left. A hop through it
// costs two events: the end of the transmission and the arrival at the far end. At equal times a departure comes before
// an arrival, as in a FIFO. Rate, delay, admission and counters are those of its Port. Each queue has a class of its own
// (disciplines/queued_port.hpp), so that what happens in one event is one call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/calendar.hpp"
#include "core/opportunities.hpp"
#include "core/packet.hpp"
#include "core/port.hpp"
#include "core/units.hpp"

namespace fabric {

// What the scheduled ports of a partition share. Packets that they drop wait in `dropped` for their owner.
struct Surroundings {
  PacketPool& pool;
  Calendar& calendar;
  std::vector<PacketId>& dropped;
};

// The number of the calendar's event that ends a transmission of a port: the packet itself is not read then.
inline constexpr PacketId kDeparture = PacketId{1} << 31;

class alignas(64) ScheduledPort {
 public:
  // With `opportunities`, packets leave at these instead of at the port's rate.
  explicit ScheduledPort(std::shared_ptr<const Opportunities> opportunities) {
    if (opportunities) opportunities_ = std::make_unique<OpportunityCursor>(std::move(opportunities));
  }
  ScheduledPort(const ScheduledPort&) = delete;
  ScheduledPort& operator=(const ScheduledPort&) = delete;
  ScheduledPort(ScheduledPort&&) = delete;
  ScheduledPort& operator=(ScheduledPort&&) = delete;
  virtual ~ScheduledPort() = default;

  // Returns whether the queue keeps the packet. The end of a transmission that begins is put into the calendar.
  [[nodiscard]] virtual bool enqueue(const Surroundings& at, Port& port, PacketId id, Time now) = 0;
  // A transmission is over at `when`. Returns the packet, which is on the wire now.
  [[nodiscard]] PacketId departed(const Surroundings& at, Port& port, Time when) {
    const auto noted = std::ranges::find(departed_, when, &Departed::when);
    const PacketId id = noted == departed_.end() ? sending_ : noted->id;
    if (noted == departed_.end()) [[likely]] end(at, port);
    else departed_.erase(noted);
    return id;
  }
  // The link is cut. Moves all packets that wait into `dropped`, and does not count them.
  virtual void cut(const Surroundings& at, Port& port, Time now) = 0;
  // A pause frame has arrived. A packet whose turn begins at this instant is sent first.
  virtual void pause(const Surroundings& at, Port& port, bool stops, Time now) = 0;
  // Whether what the ports of its switch hold leaves room for the packet.
  [[nodiscard]] virtual bool switch_has_room(const Port& port, const Packet& packet) const = 0;
  // Calls `see(packet)` for all packets that wait in a queue that shows them.
  virtual void each_waiting(const PacketPool& pool, const std::function<void(const Packet&)>& see) const = 0;

  // Ends the transmissions that are over by `now`.
  void catch_up(const Surroundings& at, Port& port, Time now) {
    while (sending_ != kNone && port.busy_until_ <= now) {
      note_departure(port.busy_until_);
      end(at, port);
    }
  }

  // Counts what the port holds in this sum over the ports of its switch, which must outlive it.
  void share(std::uint64_t& switch_bytes) { switch_bytes_ = &switch_bytes; }
  [[nodiscard]] bool shares() const { return switch_bytes_ != nullptr; }

 protected:
  // Ends the transmission, and begins the next.
  virtual void end(const Surroundings& at, Port& port) = 0;
  // The event of this transmission is still to come.
  void note_departure(Time when) { departed_.push_back({when, sending_}); }

  PacketId sending_ = kNone;
  std::uint64_t* switch_bytes_ = nullptr;
  std::uint64_t counted_bytes_ = 0;  // of this port, in the switch's sum
  std::unique_ptr<OpportunityCursor> opportunities_;

 private:
  struct Departed {
    Time when;
    PacketId id;
  };

  std::vector<Departed> departed_;  // before their events: a cut, or a packet at the same instant, came first
};

}  // namespace fabric
