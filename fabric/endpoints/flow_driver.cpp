#include "endpoints/flow_driver.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <stdexcept>

namespace fabric {

namespace {

constexpr std::size_t kChunk = 128 * 1024;       // most that one flow sends in one turn
constexpr std::size_t kReadChunk = 1024 * 1024;  // and receives
constexpr std::size_t kTurns = 64;               // between two looks at what the kernel has to say
constexpr std::size_t kConnectBatch = 64;        // connections begun at once: their SYNs share the hosts' queues
constexpr std::int64_t kBatchPatience = 20'000'000;  // ns until the next ones whether or not those are up
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint32_t kClientEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kServerEvents = EPOLLIN | EPOLLRDHUP | EPOLLET;
constexpr std::uint32_t kEnding = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr auto kRelaxed = std::memory_order_relaxed;

std::int64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * kNsPerSecond + t.tv_nsec;
}

std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

// Only the loop's thread adds, so there is no need of a read-modify-write.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t bytes) {
  counter.store(counter.load(kRelaxed) + bytes, kRelaxed);
}

void check_flow(const FlowSpec& flow, std::size_t hosts) {
  if (flow.src_host >= hosts || flow.dst_host >= hosts) throw std::invalid_argument("a flow's host is not there");
  if (flow.source.port == 0 || flow.destination.port == 0) throw std::invalid_argument("a flow needs two ports");
  if (flow.start_ns < 0) throw std::invalid_argument("a flow cannot start before the others are released");
}

const char* words(Attempt attempt) {
  switch (attempt) {
    case Attempt::connect: return "connecting";
    case Attempt::accept: return "accepting";
    case Attempt::greet: return "greeting the client";
    case Attempt::send: return "sending";
    case Attempt::receive: return "receiving";
    case Attempt::none: break;
  }
  return "nothing";
}

}  // namespace

FlowDriver::FlowDriver(std::vector<FlowSpec> flows, std::vector<int> pids, TrafficOptions options)
    : pids_(std::move(pids)), options_(std::move(options)), flows_(flows.size()),
      epoll_(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create"), zeros_(kChunk),
      discarded_(kReadChunk) {
  for (FlowId id = 0; id < flows.size(); ++id) {
    check_flow(flows[id], pids_.size());
    flows_[id].spec = flows[id];
  }
  plan_listeners();
  connect_order_.resize(flows_.size());
  std::iota(connect_order_.begin(), connect_order_.end(), FlowId{0});
  start_order_ = connect_order_;
  // Neighbours in the list share a host; in random order no host gets a burst of SYNs.
  std::shuffle(connect_order_.begin(), connect_order_.end(), std::mt19937(1));
  std::stable_sort(start_order_.begin(), start_order_.end(),
                   [this](FlowId a, FlowId b) { return flows_[a].spec.start_ns < flows_[b].spec.start_ns; });
}

FlowDriver::~FlowDriver() {
  try {
    stop();
  } catch (...) {  // whoever wanted to know has called stop()
  }
}

void FlowDriver::plan_listeners() {
  std::map<std::tuple<std::uint32_t, std::uint16_t>, std::uint32_t> known;
  for (FlowId id = 0; id < flows_.size(); ++id) {
    const FlowSpec& spec = flows_[id].spec;
    const auto number = static_cast<std::uint32_t>(listeners_.size());
    const auto [at, is_new] = known.try_emplace({spec.dst_host, spec.destination.port}, number);
    if (is_new) listeners_.push_back({spec.dst_host, spec.destination.port, std::nullopt});
    if (!flow_of_peer_.try_emplace({at->second, spec.source}, id).second) {
      throw std::invalid_argument("two flows from " + to_text(spec.source) + " to " + to_text(spec.destination));
    }
  }
}

void FlowDriver::open() {
  if (stage_ != Stage::made) throw std::logic_error("flows can be opened once");
  stage_ = Stage::open;
  open_sockets();
  watch(wake_.get(), EPOLLIN, Kind::wake, 0);
  watch(timer_.get(), EPOLLIN, Kind::timer, 0);
  for (std::uint32_t i = 0; i < listeners_.size(); ++i) {
    watch(listeners_[i].socket->get(), EPOLLIN | EPOLLET, Kind::listener, i);
  }
}

void FlowDriver::open_sockets() {
  std::vector<std::vector<Listener*>> listening(pids_.size());
  std::vector<std::vector<Flow*>> sending(pids_.size());
  for (Listener& listener : listeners_) listening[listener.host].push_back(&listener);
  for (Flow& flow : flows_) sending[flow.spec.src_host].push_back(&flow);
  in_namespaces(pids_, [&](std::size_t host) {
    for (Listener* listener : listening[host]) {
      listener->socket.emplace(open_listener(listener->port, options_.sockets));
    }
    for (Flow* flow : sending[host]) flow->client.emplace(open_client(flow->spec.source, options_.sockets));
  });
}

void FlowDriver::watch(int fd, std::uint32_t events, Kind kind, std::uint32_t index) const {
  epoll_event event{};
  event.events = events;
  event.data.u64 = static_cast<std::uint64_t>(kind) << 32 | index;
  checked_call(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

void FlowDriver::connect() {
  if (stage_ != Stage::open) throw std::logic_error("connect follows open, once");
  stage_ = Stage::connecting;
  connect_ns_ = now_ns();
  thread_ = std::thread([this] { run(); });
}

void FlowDriver::release() {
  if (stage_ != Stage::connecting) throw std::logic_error("release follows connect, once");
  stage_ = Stage::released;
  release_ns_ = now_ns();
  eventfd_write(wake_.get(), 1);
}

void FlowDriver::stop() {
  stopping_ = true;
  eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
  if (stage_ == Stage::stopped) return;
  stage_ = Stage::stopped;
  for (Listener& listener : listeners_) listener.socket.reset();
  for (FlowId id = 0; id < flows_.size(); ++id) {
    Flow& flow = flows_[id];
    if (release_ns_ != kNotYet) receive_some(id, true);
    for (auto* socket : {&flow.server, &flow.client}) {
      if (*socket) abort_connection((*socket)->get());
      socket->reset();
    }
  }
  if (failure_) std::rethrow_exception(failure_);
}

void FlowDriver::run() {
  try {
    prepare_thread();
    loop();
  } catch (...) {
    failure_ = std::current_exception();
    broken_.store(true, std::memory_order_release);
  }
  final_cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void FlowDriver::prepare_thread() const {
  pthread_setname_np(pthread_self(), "traffic");
  if (options_.cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(options_.cpu), &set);
  checked_call(-pthread_setaffinity_np(pthread_self(), sizeof set, &set),
               "pinning the flows' thread to CPU " + std::to_string(options_.cpu));
}

void FlowDriver::loop() {
  std::array<epoll_event, 512> events{};
  while (!stopping_.load(kRelaxed)) {
    const std::int64_t now = now_ns();
    connect_some(now);
    start_due(now);
    set_timer(now);
    const int patience_ms = ready_.empty() ? -1 : 0;
    const int found = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), patience_ms);
    if (found < 0 && errno != EINTR) throw_errno("epoll_wait");
    const std::size_t count = found < 0 ? 0 : static_cast<std::size_t>(found);
    for (std::size_t i = 0; i < count; ++i) dispatch(events[i].data.u64, events[i].events);
    take_turns();
  }
}

void FlowDriver::dispatch(std::uint64_t tag, std::uint32_t events) {
  const auto index = static_cast<std::uint32_t>(tag);
  std::uint64_t ignored = 0;
  switch (static_cast<Kind>(tag >> 32)) {
    case Kind::wake: eventfd_read(wake_.get(), &ignored); break;
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
void FlowDriver::take_turns() {
  for (std::size_t turns = std::min(ready_.size(), kTurns); turns > 0; --turns) {
    const Turn turn = ready_.front();
    ready_.pop_front();
    if (turn.side == Kind::client) {
      flows_[turn.flow].client_waits = false;
      send_some(turn.flow);
    } else {
      flows_[turn.flow].server_waits = false;
      receive_some(turn.flow, false);
    }
  }
}

void FlowDriver::take_turn_later(FlowId id, Kind side) {
  bool& waits = side == Kind::client ? flows_[id].client_waits : flows_[id].server_waits;
  if (waits) return;
  waits = true;
  ready_.push_back({id, side});
}

void FlowDriver::set_timer(std::int64_t now) {
  std::int64_t due = 0;
  if (next_connect_ < connect_order_.size()) {
    due = next_batch_ns_;
  } else if (const std::int64_t released = release_ns_; released != kNotYet && next_start_ < start_order_.size()) {
    due = released + flows_[start_order_[next_start_]].spec.start_ns;
  }
  if (due == 0 || due == timer_ns_) return;
  timer_ns_ = due;
  due = std::max(due, now + 1);
  itimerspec when{};
  when.it_value = {due / kNsPerSecond, due % kNsPerSecond};
  checked_call(timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr), "timerfd_settime");
}

void FlowDriver::connect_some(std::int64_t now) {
  if (next_connect_ == connect_order_.size()) return;
  if (unconnected_ > kConnectBatch / 2 && now < next_batch_ns_) return;
  unconnected_ = 0;
  next_batch_ns_ = now + kBatchPatience;
  for (; unconnected_ < kConnectBatch && next_connect_ < connect_order_.size(); ++next_connect_) {
    const FlowId id = connect_order_[next_connect_];
    Flow& flow = flows_[id];
    ++unconnected_;
    // First, because the handshake may end inside connect(), and its edge would be lost.
    watch(flow.client->get(), kClientEvents, Kind::client, id);
    const int error = start_connect(flow.client->get(), flow.spec.destination);
    if (error != 0) fail(flow, Attempt::connect, error);
  }
}

void FlowDriver::accept_all(std::uint32_t listener) {
  while (true) {
    Address peer;
    const int fd = accept_from(listeners_[listener].socket->get(), peer);
    if (fd < 0 && would_block(errno)) return;
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    FileDescriptor socket(fd, "accepting a flow's connection");
    const auto at = flow_of_peer_.find({listener, peer});
    if (at == flow_of_peer_.end() || flows_[at->second].server || flows_[at->second].state == FlowState::failed) {
      add(strangers_, 1);
      continue;
    }
    Flow& flow = flows_[at->second];
    flow.server.emplace(std::move(socket));
    watch(fd, kServerEvents, Kind::server, at->second);
    const char greeting = 0;
    if (options_.sockets.mptcp && send(fd, &greeting, 1, MSG_NOSIGNAL) != 1) fail(flow, Attempt::greet, errno);
    ready_if_so(at->second);
  }
}

void FlowDriver::client_event(FlowId id, std::uint32_t events) {
  Flow& flow = flows_[id];
  if (!flow.client) return;
  if (!flow.connected) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    // A socket that is not yet connecting is reported as hung up, without an error.
    const int error = take_error(flow.client->get());
    if (error != 0) return fail(flow, Attempt::connect, error);
    if ((events & EPOLLOUT) == 0 || (events & EPOLLHUP) != 0) return;
    flow.connected = true;
    ready_if_so(id);
  }
  if ((events & (EPOLLIN | kEnding)) != 0) drain_client(id);
  if ((events & EPOLLOUT) != 0 && flow.client) send_some(id);
}

// What a server sends is its greeting; otherwise only the connection's end can be read here.
void FlowDriver::drain_client(FlowId id) {
  Flow& flow = flows_[id];
  while (true) {
    const ssize_t got = recv(flow.client->get(), discarded_.data(), 64, MSG_DONTWAIT);
    if (got > 0) {
      flow.greeted = true;
      ready_if_so(id);
    } else if (got == 0) {
      // In order when the receiver has closed after the last byte.
      if (flow.state == FlowState::done) return flow.client.reset();
      return fail(flow, Attempt::send, 0);
    } else if (would_block(errno)) {
      return;
    } else if (errno != EINTR) {
      if (flow.state == FlowState::done) return flow.client.reset();
      return fail(flow, Attempt::send, errno);
    }
  }
}

void FlowDriver::ready_if_so(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.state != FlowState::connecting || !flow.connected || !flow.server) return;
  if (options_.sockets.mptcp && !flow.greeted) return;
  flow.ready_ns.store(now_ns() - connect_ns_, kRelaxed);
  flow.state.store(FlowState::ready, std::memory_order_release);
  if (unconnected_ > 0) --unconnected_;
}

void FlowDriver::start_due(std::int64_t now) {
  const std::int64_t released = release_ns_;
  if (released == kNotYet) return;
  for (; next_start_ < start_order_.size(); ++next_start_) {
    const FlowId id = start_order_[next_start_];
    Flow& flow = flows_[id];
    if (released + flow.spec.start_ns > now) return;
    if (flow.state != FlowState::ready) {
      if (flow.state != FlowState::failed) fail(flow, Attempt::connect, ETIMEDOUT);
      continue;
    }
    flow.started_ns.store(now_ns() - released, kRelaxed);
    flow.state.store(FlowState::running, std::memory_order_release);
    take_turn_later(id, Kind::client);
  }
}

void FlowDriver::send_some(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.state != FlowState::running || !flow.client) return;
  const std::uint64_t size = flow.spec.size_bytes;
  const std::uint64_t sent = flow.sent.load(kRelaxed);
  if (size != 0 && sent == size) return;
  const std::size_t want = size == 0 ? kChunk : static_cast<std::size_t>(std::min<std::uint64_t>(kChunk, size - sent));
  const ssize_t got = send(flow.client->get(), zeros_.data(), want, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (got < 0) {
    if (errno == EINTR) return take_turn_later(id, Kind::client);
    if (!would_block(errno)) fail(flow, Attempt::send, errno);
    return;
  }
  add(flow.sent, static_cast<std::uint64_t>(got));
  if (size != 0 && sent + static_cast<std::uint64_t>(got) == size) {
    shutdown(flow.client->get(), SHUT_WR);
  } else if (static_cast<std::size_t>(got) == want) {
    take_turn_later(id, Kind::client);
  }
  // After less than was wanted the kernel is full, and tells when it has room again.
}

// MSG_TRUNC has TCP, and MPTCP, throw the bytes away uncopied (tcp(7)).
void FlowDriver::receive_some(FlowId id, bool to_the_end) {
  Flow& flow = flows_[id];
  while (flow.server) {
    const ssize_t got = recv(flow.server->get(), discarded_.data(), kReadChunk, MSG_DONTWAIT | MSG_TRUNC);
    if (got > 0) {
      count_received(flow, static_cast<std::uint64_t>(got));
      if (to_the_end) continue;
      if (static_cast<std::size_t>(got) == kReadChunk) take_turn_later(id, Kind::server);
      return;  // what comes later is a new edge
    }
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && would_block(errno)) return;
    if (flow.state == FlowState::done) return flow.server.reset();
    return fail(flow, Attempt::receive, got < 0 ? errno : 0);
  }
}

void FlowDriver::count_received(Flow& flow, std::uint64_t bytes) {
  add(flow.received, bytes);
  const std::uint64_t size = flow.spec.size_bytes;
  if (size == 0 || flow.received.load(kRelaxed) < size || flow.state != FlowState::running) return;
  flow.completed_ns.store(now_ns() - release_ns_ - flow.started_ns.load(kRelaxed), kRelaxed);
  flow.state.store(FlowState::done, std::memory_order_release);
}

void FlowDriver::fail(Flow& flow, Attempt attempt, int error) {
  if (flow.state == FlowState::connecting && unconnected_ > 0) --unconnected_;
  flow.error.store(error, kRelaxed);
  flow.attempt.store(attempt, kRelaxed);
  flow.state.store(FlowState::failed, std::memory_order_release);
  flow.client.reset();
  flow.server.reset();
}

std::vector<FlowReading> FlowDriver::readings() const {
  if (broken_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
  std::vector<FlowReading> out(flows_.size());
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    const Flow& flow = flows_[i];
    out[i].state = flow.state.load(std::memory_order_acquire);
    out[i].received_bytes = flow.received.load(kRelaxed);
    out[i].sent_bytes = flow.sent.load(kRelaxed);
    out[i].ready_ns = flow.ready_ns.load(kRelaxed);
    out[i].started_ns = flow.started_ns.load(kRelaxed);
    out[i].completed_ns = flow.completed_ns.load(kRelaxed);
    out[i].error = flow.error.load(kRelaxed);
    out[i].attempt = flow.attempt.load(kRelaxed);
  }
  return out;
}

std::string FlowDriver::describe_failure(FlowId id) const {
  const Flow& flow = flows_.at(id);
  if (flow.state.load(std::memory_order_acquire) != FlowState::failed) return "";
  const int error = flow.error.load(kRelaxed);
  const std::string what = error == 0 ? "the other end closed the connection early" : std::strerror(error);
  return words(flow.attempt.load(kRelaxed)) + (": " + what);
}

std::int64_t FlowDriver::cpu_ns() const {
  clockid_t clock{};
  if (!thread_.joinable()) return final_cpu_ns_;
  if (pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock) != 0) return final_cpu_ns_;
  return clock_ns(clock);
}

}  // namespace fabric
