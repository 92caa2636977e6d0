// The ports of one kind of queue (queue.hpp), and what that kind states of itself: its file ends with
// `template QueueKind kind_of<...>();`, which the registry calls.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/disciplines/queue.hpp"
#include "core/disciplines/registry.hpp"
#include "core/scheduled_port.hpp"

namespace fabric {

template <class Queue>
class QueuedPort final : public ScheduledPort {
 public:
  static constexpr bool kShares =
      requires(const Queue& queue, const Packet& packet) { queue.has_room(packet, QueueLength{}, 0); };

  QueuedPort(const QueueSettings& settings, std::shared_ptr<const Opportunities> opportunities)
    requires std::constructible_from<Queue, const QueueSettings&>
      : ScheduledPort(std::move(opportunities)), queue_(settings) {}
  QueuedPort(const QueueSettings& /*none*/, std::shared_ptr<const Opportunities> opportunities)
      : ScheduledPort(std::move(opportunities)) {}

  [[nodiscard]] bool enqueue(const Surroundings& at, Port& port, PacketId id, Time now) override {
    catch_up(at, port, now);
    const bool kept = admit(at, port, id, now);
    if (kept && sending_ == kNone) begin_next(at, port, std::max(now, port.busy_until_));
    account(port.length().bytes);
    return kept;
  }

  void cut(const Surroundings& at, Port& port, Time now) override {
    if (sending_ != kNone) note_departure(port.busy_until_);
    sending_ = kNone;
    account(0);
    Port uncounted(port.config(), port.far_node(), port.random_);
    std::vector<PacketId> chosen;
    PortNow instant(at.pool, uncounted, at.dropped, now);
    for (PacketId id = queue_.next(instant); id != kNone; id = queue_.next(instant)) chosen.push_back(id);
    at.dropped.insert(at.dropped.begin(), chosen.begin(), chosen.end());
    port.random_ = uncounted.random_;
  }

  void pause(const Surroundings& at, Port& port, bool stops, Time now) override {
    catch_up(at, port, now);
    port.read_pause(now);
    port.pause_frames_ += stops ? 1 : 0;
    port.paused_since_ = now;
    port.is_paused_ = stops;
    if (!stops && sending_ == kNone && port.is_up()) begin_next(at, port, now);
  }

  [[nodiscard]] bool switch_has_room(const Port& port, const Packet& packet) const override {
    if constexpr (kShares) return queue_.has_room(packet, port.length(), *switch_bytes_);
    else return true;
  }

  void each_waiting(const PacketPool& pool, const std::function<void(const Packet&)>& see) const override {
    if constexpr (requires { queue_.each(pool, see); }) queue_.each(pool, see);
  }

 protected:
  void end(const Surroundings& at, Port& port) override {
    sending_ = kNone;
    --port.queued_;
    ++port.departed_;
    port.tx_bytes_ += std::exchange(port.sending_bytes_, 0);
    begin_next(at, port, port.busy_until_);
    account(port.length().bytes);
  }

 private:
  // The transmission begins at `when`, when the one before has ended or later.
  void begin_next(const Surroundings& at, Port& port, Time when) {
    if (port.is_paused_) [[unlikely]] return;
    PortNow instant(at.pool, port, at.dropped, when);
    sending_ = queue_.next(instant);
    if (sending_ == kNone) return;
    Packet& packet = at.pool[sending_];
    port.sending_bytes_ = packet.size_bytes;
    if (at.pool.measures_packets() && packet.hop != 0) [[unlikely]] measure(at.pool, port, packet, when);
    port.busy_until_ = opportunities_ ? opportunities_->departure(when, packet.size_bytes)
                                      : when + port.transmission_time(packet.size_bytes);
    packet.due = port.busy_until_ + port.delay();
    at.calendar.push(port.busy_until_, kDeparture | packet.port());
  }

  // Writes into the packet what a switch that begins to send it measures.
  void measure(PacketPool& pool, const Port& port, const Packet& packet, Time now) const {
    Telemetry& telemetry = pool.telemetry(sending_);
    if (!telemetry.wanted) return;
    telemetry.add({.port = packet.port(),
                   .queue_bytes = static_cast<std::uint32_t>(port.length().bytes - packet.size_bytes),
                   .sent_bytes = port.tx_bytes_ + packet.size_bytes,
                   .rate_bps = port.config_.rate_bps,
                   .at = now});
  }

  [[nodiscard]] bool admit(const Surroundings& at, Port& port, PacketId id, Time now) {
    Packet& packet = at.pool[id];
    PortNow instant(at.pool, port, at.dropped, now);
    if constexpr (requires { queue_.make_room(id, instant); }) {
      while (port.up_ && !port.has_room(packet) && queue_.make_room(id, instant)) {
      }
    }
    if (!port.admits(packet)) return false;
    if (!switch_has_room(port, packet)) {
      ++port.drops_;
      return false;
    }
    packet.due = now;
    const std::uint16_t bytes = packet.size_bytes;  // the queue may trim it
    if (!queue_.arrive(id, instant)) {
      ++port.drops_;
      ++port.early_drops_;
      return false;
    }
    port.take(packet);
    ++port.queued_;
    port.accepted_bytes_ += bytes;
    packet.epoch = port.epoch_;
    return true;
  }

  void account(std::uint64_t bytes) {
    if constexpr (kShares) *switch_bytes_ += bytes - std::exchange(counted_bytes_, bytes);
  }

  Queue queue_;
};

template <class Queue>
QueueKind kind_of() {
  QueueKind of{.name = Queue::kName, .settings = {}};
  if constexpr (requires { Queue::kSettings; }) of.settings = Queue::kSettings;
  if constexpr (requires { Queue::kReadsRank; }) of.by_rank = true;
  of.reads_precedence = of.by_rank || requires { Queue::kReadsFlow; };
  if constexpr (requires { Queue::kMarks; }) of.marks = true;
  if constexpr (requires { Queue::kTrims; }) of.trims = true;
  if constexpr (requires { Queue::kLossless; }) of.lossless = true;
  if constexpr (requires { Queue::kFlowBytes; }) of.flow_bytes = Queue::kFlowBytes;
  of.shares_buffer = QueuedPort<Queue>::kShares;
  of.port = [](const QueueSettings& settings,
               std::shared_ptr<const Opportunities> opportunities) -> std::unique_ptr<ScheduledPort> {
    return std::make_unique<QueuedPort<Queue>>(settings, std::move(opportunities));
  };
  return of;
}

}  // namespace fabric
