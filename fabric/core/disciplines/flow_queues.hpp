// Queues of flows behind one port: packets are hashed to one of a fixed number of queues by their flow, and queues wait
// for their turn in lists.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/disciplines/packet_list.hpp"
#include "core/disciplines/queue.hpp"
#include "core/hash.hpp"
#include "core/packet.hpp"
#include "core/units.hpp"

namespace fabric {

struct FlowQueue {
  PacketList packets;
  std::int64_t deficit = 0;     // bytes that it may still send in this round
  std::uint32_t behind = kNone;  // the queue behind it in its list
  bool listed = false;
  std::uint16_t hash = 0;  // of its flows
};

// `Queue` is a FlowQueue. A queue has its number, and memory, when the first packet comes to it: what a port touches is
// then small, however many queues there may be.
template <class Queue>
class FlowQueues {
 public:
  static constexpr std::size_t kBytes = sizeof(Queue) + 4 * sizeof(std::uint32_t);  // of each queue, at most

  explicit FlowQueues(std::uint32_t count) : count_(count) {}

  Queue& operator[](std::uint32_t number) { return queues_[number]; }

  // The hash has a salt of its own at every port, drawn when the first packet comes.
  [[nodiscard]] std::uint32_t of(PacketId id, PortNow& port) {
    if (queues_.empty()) {
      salt_ = static_cast<std::uint32_t>(port.random.next());
      numbers_.assign(kFewest, kNone);
    }
    const auto hash = static_cast<std::uint16_t>(mix(port.pool.precedence(id).flow, salt_) % count_);
    std::uint32_t& number = number_of(hash);
    if (number != kNone) [[likely]] return number;
    number = static_cast<std::uint32_t>(queues_.size());
    queues_.emplace_back().hash = hash;
    if (2 * queues_.size() > numbers_.size()) grow();
    return static_cast<std::uint32_t>(queues_.size() - 1);
  }

 private:
  static constexpr std::size_t kFewest = 8;

  // The place of its number in the table, or where that belongs.
  [[nodiscard]] std::uint32_t& number_of(std::uint16_t hash) {
    for (std::size_t at = hash;; ++at) {
      std::uint32_t& number = numbers_[at & (numbers_.size() - 1)];
      if (number == kNone || queues_[number].hash == hash) return number;
    }
  }

  void grow() {
    numbers_.assign(2 * numbers_.size(), kNone);
    for (std::uint32_t i = 0; i < queues_.size(); ++i) number_of(queues_[i].hash) = i;
  }

  std::uint32_t count_;
  std::uint32_t salt_ = 0;
  std::vector<Queue> queues_;
  std::vector<std::uint32_t> numbers_;  // by hash: open addressing, at most half full
};

// A list of queues, by their numbers.
template <class Queue>
class Turns {
 public:
  [[nodiscard]] bool empty() const { return first_ == kNone; }
  [[nodiscard]] std::uint32_t front() const { return first_; }

  void push_back(FlowQueues<Queue>& queues, std::uint32_t number) {
    queues[number].behind = kNone;
    queues[number].listed = true;
    (empty() ? first_ : queues[last_].behind) = number;
    last_ = number;
  }
  // Puts the packet into the queue of its flow, which joins this list with `deficit` bytes if it is in none.
  void take(FlowQueues<Queue>& queues, PacketId id, PortNow& port, std::int64_t deficit) {
    const std::uint32_t number = queues.of(id, port);
    Queue& queue = queues[number];
    queue.packets.push_back(port.pool, id);
    if (queue.listed) return;
    queue.deficit = deficit;
    push_back(queues, number);
  }
  void pop_front(FlowQueues<Queue>& queues) {
    queues[first_].listed = false;
    first_ = queues[first_].behind;
  }
  // Of `best`, which may be null, and the queues of the list: the one that holds the most bytes.
  [[nodiscard]] Queue* longest(FlowQueues<Queue>& queues, Queue* best = nullptr) const {
    for (std::uint32_t number = first_; number != kNone; number = queues[number].behind) {
      Queue& queue = queues[number];
      if (best == nullptr || queue.packets.bytes() > best->packets.bytes()) best = &queue;
    }
    return best;
  }

 private:
  std::uint32_t first_ = kNone;
  std::uint32_t last_ = kNone;
};

inline constexpr QueueSetting kFlowQueues{"flows", "queues", 1, 65'536, 1'024, true, "queues that flows are hashed to"};
inline constexpr QueueSetting kQuantum{"quantum_bytes", "bytes", 64, 1e6, 1'514, true,
                                       "bytes that a queue sends in a round"};

}  // namespace fabric
