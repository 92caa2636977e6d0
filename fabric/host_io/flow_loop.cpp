#include "host_io/flow_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include "host_io/traffic_sockets.hpp"
#include "realtime/thread_scheduling.hpp"

namespace fabric {

namespace {

constexpr std::size_t kReadChunk = 1024 * 1024;  // most that one flow receives in one turn
constexpr std::size_t kTurns = 64;               // between two calls of epoll_wait
constexpr std::size_t kConnectBatch = 64;        // connections begun at once: their SYNs share the hosts' queues
constexpr std::int64_t kBatchPatience = 20'000'000;  // ns until the next batch, even if connections are missing
constexpr std::uint32_t kClientEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kServerEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kEnding = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr auto kRelaxed = std::memory_order_relaxed;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Only the loop's thread adds, so there is no need of a read-modify-write.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t bytes) {
  counter.store(counter.load(kRelaxed) + bytes, kRelaxed);
}

}  // namespace

std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

FlowLoop::FlowLoop(FlowBoard& board, const std::vector<FlowId>& flows, const std::vector<int>& pids,
                   const TrafficOptions& options, int wake)
    : board_(board), options_(options), write_bytes_(options.write_bytes == 0 ? kSendTurn : options.write_bytes), wake_(wake),
      epoll_(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create"), zeros_(write_bytes_),
      discarded_(kReadChunk) {
  plan(flows);
  open_sockets(pids);
  watch(wake_, EPOLLIN, Kind::wake, 0);
  watch(timer_.get(), EPOLLIN, Kind::timer, 0);
  for (std::uint32_t i = 0; i < listeners_.size(); ++i) {
    watch(listeners_[i].socket->get(), EPOLLIN | EPOLLET, Kind::listener, i);
  }
}

void FlowLoop::plan(const std::vector<FlowId>& flows) {
  std::map<std::tuple<std::uint32_t, std::uint16_t>, std::uint32_t> known;
  for (const FlowId id : flows) {
    FlowRecord& record = board_.records[id];
    const FlowSpec& spec = record.spec;
    const auto number = static_cast<std::uint32_t>(listeners_.size());
    const auto [at, is_new] = known.try_emplace({spec.dst_host, spec.destination.port}, number);
    if (is_new) listeners_.push_back({spec.dst_host, spec.destination.port, spec.sockets, std::nullopt});
    flow_of_peer_[{at->second, spec.source}] = static_cast<Index>(flows_.size());
    flows_.push_back({&record, std::nullopt, std::nullopt});
  }
  for (Index index = 0; index < flows_.size(); ++index) {
    const FlowSpec& spec = flows_[index].record->spec;
    if (spec.after == kNoFlow) {
      starts_.push({spec.start_ns, index});
    } else {
      const auto awaited = std::find(flows.begin(), flows.end(), spec.after);
      flows_[static_cast<std::size_t>(awaited - flows.begin())].followers.push_back(index);
    }
  }
  connect_order_.resize(flows_.size());
  std::iota(connect_order_.begin(), connect_order_.end(), Index{0});
  // Neighbours in the list share a host; in random order no host gets a burst of SYNs.
  std::shuffle(connect_order_.begin(), connect_order_.end(), std::mt19937(1));
}

void FlowLoop::open_sockets(const std::vector<int>& pids) {
  std::vector<std::vector<Listener*>> listening(pids.size());
  std::vector<std::vector<Flow*>> sending(pids.size());
  for (Listener& listener : listeners_) listening[listener.host].push_back(&listener);
  for (Flow& flow : flows_) sending[flow.record->spec.src_host].push_back(&flow);
  const NamespaceVisit visit;
  for (std::size_t host = 0; host < pids.size(); ++host) {
    if (listening[host].empty() && sending[host].empty()) continue;
    visit.enter(pids[host]);
    for (Listener* listener : listening[host]) listener->socket.emplace(open_listener(listener->port, listener->options));
    for (Flow* flow : sending[host]) open_client_of(*flow);
  }
}

void FlowLoop::open_client_of(Flow& flow) const {
  const FlowSpec& spec = flow.record->spec;
  flow.client.emplace(open_client(spec.source, spec.sockets));
  if (options_.sizes_map >= 0) store_size(options_.sizes_map, flow.client->get(), {spec.size_bytes, options_.rank_by_sent});
}

void FlowLoop::watch(int fd, std::uint32_t events, Kind kind, std::uint32_t index) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(kind) << 32 | index;
  checked_call(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void FlowLoop::run() {
  std::array<epoll_event, 512> events{};
  while (!board_.stopping.load(kRelaxed)) {
    const std::int64_t now = monotonic_ns();
    connect_some(now);
    start_due(now);
    set_timer(now);
    const int patience_ms = turns_.empty() ? -1 : 0;
    const int found = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience_ms);
    if (found < 0 && errno != EINTR) throw_errno("epoll_wait");
    const std::size_t count = found < 0 ? 0 : static_cast<std::size_t>(found);
    for (std::size_t i = 0; i < count; ++i) dispatch(events[i].data.u64, events[i].events);
    take_turns();
  }
  end();
}

// Ends receivers first, or data that their senders have queued would go on arriving.
void FlowLoop::end() {
  for (Listener& listener : listeners_) listener.socket.reset();
  for (Index index = 0; index < flows_.size(); ++index) {
    if (board_.release_ns != kNotYet) receive_some(index, true);
    for (auto* socket : {&flows_[index].server, &flows_[index].client}) {
      if (*socket) abort_connection((*socket)->get());
      socket->reset();
    }
  }
}

void FlowLoop::dispatch(std::uint64_t tag, std::uint32_t events) {
  const auto index = static_cast<std::uint32_t>(tag);
  std::uint64_t ignored = 0;
  switch (static_cast<Kind>(tag >> 32)) {
    case Kind::wake: eventfd_read(wake_, &ignored); break;
    case Kind::timer:
      timer_ns_ = 0;
      eventfd_read(timer_.get(), &ignored);  // a timer is read in the same way
      break;
    case Kind::listener: accept_all(index); break;
    case Kind::client: client_event(index, events); break;
    case Kind::server: receive_some(index, (events & kEnding) != 0); break;
  }
}

// Endpoints that stopped for fairness, not because the kernel had enough, get no new edge.
void FlowLoop::take_turns() {
  for (std::size_t turns = std::min(turns_.size(), kTurns); turns > 0; --turns) {
    const Turn turn = turns_.front();
    turns_.pop_front();
    if (turn.side == Kind::client) {
      flows_[turn.flow].client_waits = false;
      send_some(turn.flow);
    } else {
      flows_[turn.flow].server_waits = false;
      receive_some(turn.flow, false);
    }
  }
}

void FlowLoop::take_turn_later(Index index, Kind side) {
  bool& waits = side == Kind::client ? flows_[index].client_waits : flows_[index].server_waits;
  if (waits) return;
  waits = true;
  turns_.push_back({index, side});
}

void FlowLoop::set_timer(std::int64_t now) {
  std::int64_t due = 0;
  const std::int64_t released = board_.release_ns;
  if (next_connect_ < connect_order_.size()) {
    due = next_batch_ns_;
  } else if (released != kNotYet && !starts_.empty()) {
    due = released + starts_.top().due_ns;
  }
  if (due <= 0 || due == timer_ns_) return;
  timer_ns_ = due;
  due = std::max(due, now + 1);
  itimerspec when{};
  when.it_value = {due / kNsPerSecond, due % kNsPerSecond};
  checked_call(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr), "timerfd_settime");
}

void FlowLoop::connect_some(std::int64_t now) {
  if (board_.connect_ns == kNotYet || next_connect_ == connect_order_.size()) return;
  if (unconnected_ > kConnectBatch / 2 && now < next_batch_ns_) return;
  unconnected_ = 0;
  next_batch_ns_ = now + kBatchPatience;
  for (; unconnected_ < kConnectBatch && next_connect_ < connect_order_.size(); ++next_connect_) {
    const Index index = connect_order_[next_connect_];
    Flow& flow = flows_[index];
    ++unconnected_;
    // First, because the handshake may end inside connect(), and its edge would be lost.
    watch(flow.client->get(), kClientEvents, Kind::client, index);
    const int error = start_connect(flow.client->get(), flow.record->spec.destination);
    if (error != 0) fail(flow, Attempt::connect, error);
  }
}

void FlowLoop::accept_all(std::uint32_t listener) {
  while (true) {
    Address peer;
    const int fd = accept_from(listeners_[listener].socket->get(), peer);
    if (fd < 0 && would_block(errno)) return;
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    FileDescriptor socket(fd, "accepting a flow's connection");
    const auto at = flow_of_peer_.find({listener, peer});
    Flow* expected = at == flow_of_peer_.end() ? nullptr : &flows_[at->second];
    if (!expected || expected->server || expected->record->state == FlowState::failed) {
      ++board_.strangers;
      continue;
    }
    Flow& flow = *expected;
    flow.server.emplace(std::move(socket));
    if (flow.record->spec.size_bytes == 0) read_in_chunks(fd, static_cast<int>(options_.read_bytes));
    watch(fd, kServerEvents, Kind::server, at->second);
    const char greeting = 0;
    if (flow.record->spec.sockets.mptcp && send(fd, &greeting, 1, MSG_NOSIGNAL) != 1) fail(flow, Attempt::greet, errno);
    ready_if_so(flow);
  }
}

void FlowLoop::client_event(Index index, std::uint32_t events) {
  Flow& flow = flows_[index];
  if (!flow.client) return;
  if (!flow.connected) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    // A socket that is not yet connecting is reported as hung up, without an error.
    const int error = take_error(flow.client->get());
    if (error != 0) return fail(flow, Attempt::connect, error);
    if ((events & EPOLLOUT) == 0 || (events & EPOLLHUP) != 0) return;
    flow.connected = true;
    ready_if_so(flow);
  }
  if ((events & (EPOLLIN | kEnding)) != 0) drain_client(index);
  if ((events & EPOLLOUT) != 0 && flow.client) send_some(index);
}

// What a server sends is its greeting; otherwise only the connection's end can be read here.
void FlowLoop::drain_client(Index index) {
  Flow& flow = flows_[index];
  while (true) {
    const ssize_t got = recv(flow.client->get(), discarded_.data(), 64, MSG_DONTWAIT);
    if (got > 0) {
      flow.greeted = true;
      ready_if_so(flow);
    } else if (got == 0) {
      // In order when the receiver has closed after the last byte.
      if (flow.record->state == FlowState::done) return close_client(flow);
      return fail(flow, Attempt::send, 0);
    } else if (would_block(errno)) {
      return;
    } else if (errno != EINTR) {
      if (flow.record->state == FlowState::done) return close_client(flow);
      return fail(flow, Attempt::send, errno);
    }
  }
}

// The sender knows now that all its data was received, as a simulated one does when all is acknowledged.
void FlowLoop::close_client(Flow& flow) {
  flow.client.reset();
  const std::int64_t now = monotonic_ns() - board_.release_ns;
  for (const Index follower : flow.followers) starts_.push({now + flows_[follower].record->spec.start_ns, follower});
  flow.followers.clear();
}

void FlowLoop::ready_if_so(Flow& flow) {
  if (flow.record->state != FlowState::connecting || !flow.connected || !flow.server) return;
  if (flow.record->spec.sockets.mptcp && !flow.greeted) return;
  flow.record->ready_ns.store(monotonic_ns() - board_.connect_ns, kRelaxed);
  flow.record->state.store(FlowState::ready, std::memory_order_release);
  if (unconnected_ > 0) --unconnected_;
}

void FlowLoop::start_due(std::int64_t now) {
  const std::int64_t released = board_.release_ns;
  if (released == kNotYet) return;
  while (!starts_.empty() && released + starts_.top().due_ns <= now) {
    const Index index = starts_.top().flow;
    starts_.pop();
    Flow& flow = flows_[index];
    if (flow.record->state != FlowState::ready) {
      if (flow.record->state != FlowState::failed) fail(flow, Attempt::connect, ETIMEDOUT);
      continue;
    }
    flow.record->started_ns.store(monotonic_ns() - released, kRelaxed);
    flow.record->state.store(FlowState::running, std::memory_order_release);
    take_turn_later(index, Kind::client);
  }
}

void FlowLoop::send_some(Index index) {
  Flow& flow = flows_[index];
  if (flow.record->state != FlowState::running || !flow.client) return;
  const std::uint64_t size = flow.record->spec.size_bytes;
  for (std::size_t turn = 0; turn < kSendTurn; turn += write_bytes_) {
    const std::uint64_t sent = flow.record->sent.load(kRelaxed);
    if (size != 0 && sent == size) return;
    const std::uint64_t left = size == 0 ? write_bytes_ : size - sent;
    if (!send_once(flow, static_cast<std::size_t>(std::min<std::uint64_t>(write_bytes_, left)))) return;
  }
  take_turn_later(index, Kind::client);
}

// False when the flow has nothing more to do for now: the kernel signals when it has room again.
bool FlowLoop::send_once(Flow& flow, std::size_t bytes) {
  ssize_t got = -1;
  do {
    got = send(flow.client->get(), zeros_.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (!would_block(errno)) fail(flow, Attempt::send, errno);
    return false;
  }
  add(flow.record->sent, static_cast<std::uint64_t>(got));
  if (flow.record->sent.load(kRelaxed) == flow.record->spec.size_bytes) {
    if (!flow.record->spec.sockets.mptcp) shutdown(flow.client->get(), SHUT_WR);
    return false;
  }
  return static_cast<std::size_t>(got) == bytes;
}

// With MSG_TRUNC TCP and MPTCP discard the bytes without copying them (tcp(7)).
void FlowLoop::receive_some(Index index, bool to_the_end) {
  Flow& flow = flows_[index];
  while (flow.server) {
    const ssize_t got = recv(flow.server->get(), discarded_.data(), kReadChunk, MSG_DONTWAIT | MSG_TRUNC);
    if (got > 0) {
      count_received(flow, static_cast<std::uint64_t>(got));
      if (to_the_end) continue;
      if (static_cast<std::size_t>(got) == kReadChunk) take_turn_later(index, Kind::server);
      return;  // what comes later is a new edge
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return;
    if (flow.record->state == FlowState::done) return flow.server.reset();
    return fail(flow, Attempt::receive, got < 0 ? errno : 0);
  }
}

void FlowLoop::count_received(Flow& flow, std::uint64_t bytes) {
  FlowRecord& record = *flow.record;
  add(record.received, bytes);
  const std::uint64_t size = record.spec.size_bytes;
  if (size == 0 || record.received.load(kRelaxed) < size || record.state != FlowState::running) return;
  const std::int64_t now = monotonic_ns() - board_.release_ns;
  record.completed_ns.store(now - record.started_ns.load(kRelaxed), kRelaxed);
  if (flow.client) record.retransmitted.store(retransmitted_segments(flow.client->get(), record.spec.sockets.mptcp), kRelaxed);
  record.state.store(FlowState::done, std::memory_order_release);
  // An MPTCP sender whose side is shut can open no more subflows (ENOTCONN), so its receiver closes first.
  if (record.spec.sockets.mptcp) flow.server.reset();
}

void FlowLoop::fail(Flow& flow, Attempt attempt, int error) {
  if (flow.record->state == FlowState::connecting && unconnected_ > 0) --unconnected_;
  flow.record->error.store(error, kRelaxed);
  flow.record->attempt.store(attempt, kRelaxed);
  flow.record->state.store(FlowState::failed, std::memory_order_release);
  flow.client.reset();
  flow.server.reset();
}

}  // namespace fabric
