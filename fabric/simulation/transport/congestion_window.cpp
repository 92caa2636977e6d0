#include "simulation/transport/congestion_window.hpp"

#include <algorithm>

#include "simulation/congestion/dctcp.hpp"

namespace fabric {

void CongestionWindow::grow(std::uint32_t fresh, Time now) {
  path_.since_loss += fresh;
  if (fresh == 0 || connection_.control->keeps_window) return;
  const bool slow_start = sender_.in_slow_start(path_.window);
  // Only a window that was in use has tested the path; in slow start half of it is enough (RFC 7661).
  const bool used = sender_.limited_by_window || (slow_start && path_.window < 2 * (sender_.board.outstanding() + fresh));
  if (!used) return;
  if (slow_start) {
    path_.window += fresh;
    if (sender_.ssthresh != 0) path_.window = std::min(path_.window, std::max(sender_.ssthresh, path_.window - fresh));
    return limit();
  }
  if (connection_.control->by_time) {
    const double now_s = static_cast<double>(now) / static_cast<double>(kSecond);
    path_.window = cubic::grown(stack_.cubics[number_].state, path_.window, fresh, now_s, path_.rtt_s);
    return limit();
  }
  path_.window += fresh * connection_.control->increase(siblings(), subflow_.number);
  path_.window = std::max(path_.window, 1.0);
  limit();
}

void CongestionWindow::limit() {
  if (options().max_window == 0) return;
  path_.window = std::min(path_.window, static_cast<double>(options().max_window));
}

void CongestionWindow::react_to_marks(const Segment& ack, std::uint32_t fresh) {
  if (!options().ecn) return;
  update_alpha(ack, fresh);
  const bool reacts = sender_.recovery == Recovery::open && !before(sender_.board.una(), sender_.reduced_until);
  if (!ack.marked || !reacts) return;
  sender_.reduced_until = sender_.board.next();
  if (connection_.control->by_share_of_marks) {
    path_.window = dctcp_after_marks(path_.window, sender_.alpha);
    sender_.ssthresh = path_.window;
  } else {
    reduce();
  }
}

// RFC 8257, section 3.3, once per window.
void CongestionWindow::update_alpha(const Segment& ack, std::uint32_t fresh) {
  sender_.acked += fresh;
  if (ack.marked) sender_.acked_marked += fresh;
  if (before(sender_.board.una(), sender_.alpha_end) || sender_.acked == 0) return;
  sender_.alpha = dctcp_alpha(sender_.alpha, static_cast<double>(sender_.acked_marked) / sender_.acked);
  sender_.acked = sender_.acked_marked = 0;
  sender_.alpha_end = sender_.board.next();
}

void CongestionWindow::reduce() {
  if (connection_.control->by_time) cubic::reduced(stack_.cubics[number_].state, path_.window);
  sender_.ssthresh = connection_.control->after_loss(siblings(), subflow_.number);
  path_.window = sender_.ssthresh;
  path_.between_loss = path_.since_loss;
  path_.since_loss = 0;
}

void CongestionWindow::timed_out() {
  if (connection_.control->by_time) cubic::timed_out(stack_.cubics[number_].state);
  if (!connection_.control->keeps_window) path_.window = 1;
}

void CongestionWindow::save() {
  if (connection_.control->by_time) stack_.cubics[number_].before_loss = stack_.cubics[number_].state;
  sender_.before_loss = {true, path_.window, sender_.ssthresh, sender_.transmissions};
}

void CongestionWindow::undo() {
  if (connection_.control->by_time) stack_.cubics[number_].state = stack_.cubics[number_].before_loss;
  path_.window = std::max(path_.window, sender_.before_loss.window);
  path_.since_loss += path_.between_loss;
  sender_.ssthresh = sender_.before_loss.ssthresh;
  sender_.before_loss.known = false;
}

}  // namespace fabric
