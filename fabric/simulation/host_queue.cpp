#include "simulation/host_queue.hpp"

#include "simulation/stack.hpp"
#include "simulation/transport/sender.hpp"

namespace fabric {

bool HostQueue::is_full(Time now) {
  return stack_.network.port(port_).holds(stack_.options.nic_queue_pkts, now);
}

bool HostQueue::is_claimed() const { return stack_.options.smallest_first && stack_.waiting[port_].first != kNone; }

void HostQueue::wait(std::uint32_t subflow) {
  if (stack_.subflows[subflow].sender.waiting_for_nic) return;
  if (stack_.waiting[port_].first == kNone) wake_at_next_departure();
  append(subflow);
}

void HostQueue::serve(Time now) {
  WaitingSenders& waiting = stack_.waiting[port_];
  const Stack::Prompt processed_while_waiting(stack_);
  while (waiting.first != kNone) {
    if (is_full(now)) return wake_at_next_departure();
    const std::uint32_t number = stack_.options.smallest_first ? take_smallest() : take(waiting.first, kNone);
    // `wake_at_next_departure` is called above, so a sender with more to send joins the list without `wait`.
    if (Sender(stack_, number).send_one(now, true)) append(number);
  }
}

std::uint32_t HostQueue::take(std::uint32_t subflow, std::uint32_t before) {
  WaitingSenders& waiting = stack_.waiting[port_];
  SenderState& sender = stack_.subflows[subflow].sender;
  (before == kNone ? waiting.first : stack_.subflows[before].sender.next_waiting) = sender.next_waiting;
  if (waiting.last == subflow) waiting.last = before;
  sender.waiting_for_nic = false;
  return subflow;
}

// As in the switches' queues, the first of equals.
std::uint32_t HostQueue::take_smallest() {
  const auto rank = [&](std::uint32_t subflow) {
    return stack_.connections[stack_.subflows[subflow].connection].rank(stack_.options.rank == Rank::sent);
  };
  std::uint32_t best = stack_.waiting[port_].first;
  std::uint32_t before_best = kNone;
  std::uint32_t least = rank(best);
  std::uint32_t before = best;
  for (std::uint32_t i = stack_.subflows[best].sender.next_waiting; i != kNone;
       before = i, i = stack_.subflows[i].sender.next_waiting) {
    if (const std::uint32_t its = rank(i); its < least) {
      least = its;
      best = i;
      before_best = before;
    }
  }
  return take(best, before_best);
}

void HostQueue::append(std::uint32_t subflow) {
  WaitingSenders& waiting = stack_.waiting[port_];
  SenderState& sender = stack_.subflows[subflow].sender;
  sender.waiting_for_nic = true;
  sender.next_waiting = kNone;
  if (waiting.first == kNone) {
    waiting.first = subflow;
  } else {
    stack_.subflows[waiting.last].sender.next_waiting = subflow;
  }
  waiting.last = subflow;
}

void HostQueue::wake_at_next_departure() {
  stack_.timers.schedule(Alarm::nic, port_, stack_.network.port(port_).first_departure());
}

}  // namespace fabric
