#include "simulation/host_queue.hpp"

#include "simulation/stack.hpp"
#include "simulation/transport/sender.hpp"

namespace fabric {

bool HostQueue::is_full(Time now) {
  Port& port = stack_.network.port(port_);
  port.advance(now);
  return port.queued_pkts() >= stack_.options.nic_queue_pkts;
}

void HostQueue::wait(std::uint32_t subflow) {
  if (stack_.subflows[subflow].sender.waiting_for_nic) return;
  if (stack_.waiting[port_].first == kNone) wake_at_next_departure();
  append(subflow);
}

void HostQueue::serve(Time now) {
  WaitingSenders& waiting = stack_.waiting[port_];
  while (waiting.first != kNone) {
    if (is_full(now)) return wake_at_next_departure();
    const std::uint32_t number = waiting.first;
    SenderState& sender = stack_.subflows[number].sender;
    waiting.first = sender.next_waiting;
    sender.waiting_for_nic = false;
    // `wake_at_next_departure` is called above, so a sender with more to send joins the list without `wait`.
    if (Sender(stack_, number).send_one(now)) append(number);
  }
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
