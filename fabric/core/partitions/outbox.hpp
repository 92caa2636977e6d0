// What one partition of a network has sent to the others: packets under way to their nodes, and descriptors that it
// gives back to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "core/units.hpp"

namespace fabric {

struct Mail {
  Time due = 0;
  PacketId id = kNone;
};

class Outbox {
 public:
  explicit Outbox(std::size_t partitions) : mail_(partitions), spare_(partitions) {}

  void send(std::size_t to, Mail mail) {
    earliest_ = std::min(earliest_, mail.due);
    mail_[to].push_back(mail);
  }
  void give_back(std::size_t to, PacketId id) { spare_[to].push_back(id); }

  // For the receiver, which empties them.
  [[nodiscard]] std::vector<Mail>& mail(std::size_t to) { return mail_[to]; }
  [[nodiscard]] std::vector<PacketId>& spare(std::size_t to) { return spare_[to]; }
  [[nodiscard]] std::size_t spares() const {
    std::size_t sum = 0;
    for (const auto& each : spare_) sum += each.size();
    return sum;
  }

  // When the first packet is due that was sent since `begin`, kNever if none was.
  [[nodiscard]] Time earliest() const { return earliest_; }
  void begin() { earliest_ = kNever; }

 private:
  std::vector<std::vector<Mail>> mail_;  // to each partition, in the order in which it was sent
  std::vector<std::vector<PacketId>> spare_;
  Time earliest_ = kNever;
};

}  // namespace fabric
