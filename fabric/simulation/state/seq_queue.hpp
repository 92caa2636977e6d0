// A FIFO of sequence numbers. An empty one takes four words.
#pragma once

#include <cstddef>
#include <vector>

#include "simulation/state/segment.hpp"

namespace fabric {

class SeqQueue {
 public:
  [[nodiscard]] bool empty() const { return head_ == items_.size(); }
  [[nodiscard]] std::size_t size() const { return items_.size() - head_; }
  [[nodiscard]] Seq front() const { return items_[head_]; }
  void push(Seq seq) { items_.push_back(seq); }

  void pop() {
    if (++head_ == items_.size()) {
      items_.clear();
      head_ = 0;
    } else if (head_ >= 64 && head_ * 2 >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
  }
  template <class Each>
  void each(Each visit) const {
    for (std::size_t i = head_; i < items_.size(); ++i) visit(items_[i]);
  }

 private:
  std::vector<Seq> items_;
  std::size_t head_ = 0;
};

}  // namespace fabric
