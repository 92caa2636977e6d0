#include "host_io/flow_driver.hpp"

#include <pthread.h>
#include <time.h>

#include <cstring>
#include <map>
#include <set>
#include <stdexcept>

namespace fabric {

namespace {

void check_flow(const FlowSpec& flow, std::size_t hosts) {
  if (flow.src_host >= hosts || flow.dst_host >= hosts) throw std::invalid_argument("a flow's host is not there");
  if (flow.source.port == 0 || flow.destination.port == 0) throw std::invalid_argument("a flow needs two ports");
  if (flow.start_ns < 0) throw std::invalid_argument("a flow cannot start before the others are released");
}

// Flows that share a listener share a loop.
std::size_t loop_of(const FlowSpec& flow, std::size_t loops) {
  return (std::size_t{flow.dst_host} + flow.destination.port) % loops;
}

std::int64_t cpu_time_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void pin(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  checked_call(-pthread_setaffinity_np(pthread_self(), sizeof set, &set),
               "pinning the flows' thread to CPU " + std::to_string(cpu));
}

const char* words(Attempt attempt) {
  switch (attempt) {
    case Attempt::connect: return "connecting";
    case Attempt::greet: return "greeting the client";
    case Attempt::send: return "sending";
    case Attempt::receive: return "receiving";
    case Attempt::none: break;
  }
  return "nothing";
}

}  // namespace

FlowDriver::FlowDriver(std::vector<FlowSpec> flows, std::vector<int> pids, TrafficOptions options)
    : pids_(std::move(pids)), options_(std::move(options)), board_(flows.size()) {
  if (options_.loops == 0) throw std::invalid_argument("flows need a loop");
  for (unsigned i = 0; i < options_.loops; ++i) workers_.push_back(std::make_unique<Worker>());
  for (FlowId id = 0; id < flows.size(); ++id) {
    check_flow(flows[id], pids_.size());
    if (flows[id].after != kNoFlow) {
      if (flows[id].after >= id) throw std::invalid_argument("a flow waits for one that comes later");
      if (flows[flows[id].after].size_bytes == 0) throw std::invalid_argument("a flow waits for one without end");
      if (options_.loops > 1) throw std::invalid_argument("flows that wait for others need a single loop");
    }
    board_.records[id].spec = flows[id];
    workers_[loop_of(flows[id], workers_.size())]->flows.push_back(id);
  }
  check_paths();
}

FlowDriver::~FlowDriver() {
  try {
    stop();
  } catch (...) {  // a caller that wants the error has called stop()
  }
}

void FlowDriver::check_paths() const {
  std::set<std::tuple<std::uint32_t, std::uint16_t, Address>> known;
  std::map<std::tuple<std::uint32_t, std::uint16_t>, SocketOptions> listeners;
  for (const FlowRecord& record : board_.records) {
    const FlowSpec& spec = record.spec;
    if (!known.insert({spec.dst_host, spec.destination.port, spec.source}).second) {
      throw std::invalid_argument("two flows from " + to_text(spec.source) + " to " + to_text(spec.destination));
    }
    const auto [listener, is_new] = listeners.try_emplace({spec.dst_host, spec.destination.port}, spec.sockets);
    if (listener->second != spec.sockets) {
      throw std::invalid_argument("flows to " + to_text(spec.destination) + " share a listener but not a transport");
    }
  }
}

void FlowDriver::open() {
  if (stage_ != Stage::made) throw std::logic_error("flows can be opened once");
  stage_ = Stage::open;
  for (const auto& worker : workers_) worker->thread = std::thread([this, &worker] { work(*worker); });
  std::exception_ptr refused;
  for (const auto& worker : workers_) {
    try {
      worker->opened.get_future().get();
    } catch (...) {
      refused = std::current_exception();
    }
  }
  if (refused) std::rethrow_exception(refused);
}

void FlowDriver::connect() {
  if (stage_ != Stage::open) throw std::logic_error("connect follows open, once");
  stage_ = Stage::connecting;
  board_.connect_ns = monotonic_ns();
  wake_all();
}

void FlowDriver::release() {
  if (stage_ != Stage::connecting) throw std::logic_error("release follows connect, once");
  stage_ = Stage::released;
  board_.release_ns = monotonic_ns();
  wake_all();
}

void FlowDriver::stop() {
  stage_ = Stage::stopped;
  board_.stopping = true;
  wake_all();
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  for (const auto& worker : workers_) {
    if (worker->failure) std::rethrow_exception(worker->failure);
  }
}

void FlowDriver::wake_all() const {
  for (const auto& worker : workers_) eventfd_write(worker->wake.get(), 1);
}

void FlowDriver::work(Worker& worker) {
  bool is_open = false;
  try {
    pthread_setname_np(pthread_self(), "traffic");
    pin(options_.cpu);
    std::vector<int> kept{worker.wake.get()};
    if (options_.sizes_map >= 0) kept.push_back(options_.sizes_map);
    keep_own_descriptors(std::move(kept));
    FlowLoop loop(board_, worker.flows, pids_, options_, worker.wake.get());
    is_open = true;
    worker.opened.set_value();
    loop.run();
  } catch (...) {
    if (is_open) {
      worker.failure = std::current_exception();
      worker.broken.store(true, std::memory_order_release);
    } else {
      worker.opened.set_exception(std::current_exception());
    }
  }
  worker.final_cpu_ns = cpu_time_ns(CLOCK_THREAD_CPUTIME_ID);
}

std::vector<FlowReading> FlowDriver::readings() const {
  for (const auto& worker : workers_) {
    if (worker->broken.load(std::memory_order_acquire)) std::rethrow_exception(worker->failure);
  }
  constexpr auto relaxed = std::memory_order_relaxed;
  std::vector<FlowReading> out(board_.records.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const FlowRecord& flow = board_.records[i];
    out[i].state = flow.state.load(std::memory_order_acquire);
    out[i].received_bytes = flow.received.load(relaxed);
    out[i].sent_bytes = flow.sent.load(relaxed);
    out[i].ready_ns = flow.ready_ns.load(relaxed);
    out[i].started_ns = flow.started_ns.load(relaxed);
    out[i].completed_ns = flow.completed_ns.load(relaxed);
    out[i].retransmitted = flow.retransmitted.load(relaxed);
    out[i].error = flow.error.load(relaxed);
  }
  return out;
}

std::string FlowDriver::describe_failure(FlowId id) const {
  const FlowRecord& flow = board_.records.at(id);
  if (flow.state.load(std::memory_order_acquire) != FlowState::failed) return "";
  const int error = flow.error.load(std::memory_order_relaxed);
  const std::string what = error == 0 ? "the other end closed the connection early" : std::strerror(error);
  return words(flow.attempt.load(std::memory_order_relaxed)) + (": " + what);
}

std::int64_t FlowDriver::cpu_ns() const {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) {
    clockid_t clock{};
    const bool runs = worker->thread.joinable() && pthread_getcpuclockid(worker->thread.native_handle(), &clock) == 0;
    sum += runs ? cpu_time_ns(clock) : worker->final_cpu_ns;
  }
  return sum;
}

}  // namespace fabric
