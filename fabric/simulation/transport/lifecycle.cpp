#include "simulation/transport/lifecycle.hpp"

#include "simulation/schedulers/data_scheduler.hpp"
#include "simulation/transport/handshake.hpp"
#include "simulation/transport/socket_info.hpp"

namespace fabric {

void Lifecycle::start(Time now) {
  connection_.open = true;
  connection_.started = now;
  if (stack_.options.handshake) return Handshake(stack_, connection_.first).connect(now);
  stack_.subflows[connection_.first].sender.established = true;
  first_established(now);
  if (connection_.alone) {
    DataScheduler(stack_, connection_).distribute(now);
    SocketInfo(stack_, connection_.first).update(now);
  }
}

void Lifecycle::first_established(Time now) {
  const TransportOptions& options = stack_.options;
  connection_.alone = true;
  const bool waits = options.join_after != 0 || options.join_after_bytes != 0;
  if (!connection_.multipath() || !waits) return join(now);
  if (options.join_after != 0) stack_.timers.schedule(Alarm::join, number_, stack_.clock.after(now, options.join_after));
}

void Lifecycle::join(Time now) {
  if (!connection_.open || !connection_.alone) return;
  connection_.alone = false;
  const std::uint32_t end = connection_.first + connection_.count;
  if (stack_.options.handshake) {
    for (std::uint32_t i = connection_.first + 1; i < end; ++i) Handshake(stack_, i).connect(now);
    return;
  }
  for (std::uint32_t i = connection_.first + 1; i < end; ++i) stack_.subflows[i].sender.established = true;
  DataScheduler(stack_, connection_).distribute(now);
  for (std::uint32_t i = connection_.first; i < end; ++i) SocketInfo(stack_, i).update(now);
}

void Lifecycle::close(Time now) {
  connection_.open = false;
  connection_.to_reinject = {};
  connection_.arrivals.release();
  for (std::uint32_t i = connection_.first; i < connection_.first + connection_.count; ++i) {
    Subflow& subflow = stack_.subflows[i];
    subflow.sender.retransmission.at = kNever;
    subflow.sender.board.close();
    subflow.sender.bound = {};
    subflow.receiver.arrivals.release();
    SocketInfo(stack_, i).update(now);
  }
  if (connection_.then == kNone) return;
  stack_.timers.schedule(Alarm::follow, connection_.then, now + stack_.connections[connection_.then].start);
}

}  // namespace fabric
