#include "realtime/realtime_fabric.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include <algorithm>
#include <span>
#include <stdexcept>
#include <string>

#include "realtime/thread_scheduling.hpp"

namespace fabric {

namespace {

constexpr std::size_t kMostFramesADrain = 512;
constexpr Time kWorthPolling = kMillisecond;  // sleep on the socket, not on the clock, beyond this
constexpr std::int64_t kPatienceNs = 30'000'000;
constexpr std::int64_t kIdlePeriodNs = 1'000'000;
constexpr Time kLongestSleep = 100 * kMillisecond;
constexpr int kMaxIfindex = 1 << 24;  // those of a fresh namespace count from 1

}  // namespace

RealtimeFabric::RealtimeFabric(NetworkConfig config, std::vector<HostEnd> ends, RealtimeOptions options)
    : options_(options), network_(std::move(config)), ends_(std::move(ends)),
      frames_(network_.pool().capacity()), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd") {
  if (ends_.size() != network_.router().nics().size()) throw std::invalid_argument("one host end a NIC");
  for (NicId nic = 0; nic < ends_.size(); ++nic) {
    if (ends_[nic].ifindex < 1 || ends_[nic].ifindex > kMaxIfindex) {
      throw std::invalid_argument("a host end's interface index is not 1 to 2^24: " + std::to_string(ends_[nic].ifindex));
    }
    const auto ifindex = static_cast<std::size_t>(ends_[nic].ifindex);
    if (ifindex >= nic_of_ifindex_.size()) nic_of_ifindex_.resize(ifindex + 1, kNone);
    nic_of_ifindex_[ifindex] = nic;
  }
  if (options_.probed_cpus.empty()) return;
  probe_.emplace(options_.probed_cpus, options_.probe);
  if (options_.idle_hold > 0) {
    idleness_.emplace(options_.probed_cpus, ProbeOptions{kIdlePeriodNs, ProbeOptions::kComesLast});
  }
}

RealtimeFabric::~RealtimeFabric() {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

void RealtimeFabric::start() {
  if (finished_ || thread_.joinable()) throw std::logic_error("a fabric can be started once");
  for (auto* probe : {&probe_, &idleness_}) {
    if (*probe) (*probe)->start();
  }
  clock_.start(clock_ns(CLOCK_MONOTONIC));
  awaited_ns_ = clock_.epoch_ns();
  if (options_.sample_interval > 0) next_sample_ = options_.sample_interval;
  stopping_ = false;
  thread_ = std::thread([this] { run(); });
}

void RealtimeFabric::stop() {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
  for (auto* probe : {&probe_, &idleness_}) {
    if (*probe) (*probe)->stop();
  }
  if (failure_) std::rethrow_exception(failure_);
}

// In virtual time, a sleep ends exactly when it is due.
std::int64_t RealtimeFabric::now_ns() const { return on_the_dot_ ? awaited_ns_ : clock_ns(CLOCK_MONOTONIC); }

// Begins a turn: how far the fabric's time has come.
void RealtimeFabric::look_at_clock() {
  const std::int64_t real_ns = now_ns();
  if (options_.tolerance > 0) {
    clock_.pause(awaited_ns_ + options_.tolerance / kNanosecond, real_ns);
    clock_.pause(real_ns - held_ns(real_ns), real_ns);
  }
  clock_.lived(real_ns);
  awaited_ns_ = real_ns;
  at_ = clock_.at(real_ns);
}

// Returns for how long a CPU has not run, or has had hosts' work left over, so that hosts answer too late; 0 if all
// keep up. Another program may keep a CPU busy without end. So the clock goes on after a limit, and that time is
// counted.
std::int64_t RealtimeFabric::held_ns(std::int64_t real_ns) {
  const std::int64_t overdue_ns = probe_ && probe_->is_real_time() ? probe_->overdue_ns(real_ns) : 0;
  if (overdue_ns > options_.hold / kNanosecond) return overdue_ns;
  if (!idleness_) return 0;
  const std::int64_t not_idle_ns = idleness_->overdue_ns(real_ns);
  if (not_idle_ns <= options_.idle_hold / kNanosecond) {
    patience_ns_ = kPatienceNs;
    return 0;
  }
  const std::int64_t since_ns = real_ns - clock_.lived_ns();
  if (patience_ns_ <= 0) {
    unheld_ns_ += since_ns;
    return 0;
  }
  patience_ns_ -= since_ns;
  return not_idle_ns;
}

// The fabric's time of a frame that the kernel stamped; never later than this turn.
Time RealtimeFabric::fabric_time(std::int64_t realtime_ns) const {
  return std::clamp(clock_.of_past(realtime_ns - real_offset_ns_), Time{0}, at_);
}

void RealtimeFabric::wake() const { eventfd_write(wake_.get(), 1); }

void RealtimeFabric::run() {
  try {
    apply_scheduling();
    loop();
  } catch (...) {
    failure_ = std::current_exception();
  }
  const std::scoped_lock lock(requests_mutex_);
  health_.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  finished_ = true;
  for (auto& request : requests_) request();
  requests_.clear();
}

void RealtimeFabric::apply_scheduling() const {
  pthread_setname_np(pthread_self(), "fabric");
  prctl(PR_SET_TIMERSLACK, 1UL);
  if (options_.cpu >= 0) {
    pin(pthread_self(), options_.cpu, "the fabric");
  }
  if (options_.priority > 0 && !give_priority(pthread_self(), options_.priority)) {
    throw_errno("giving the fabric real-time priority " + std::to_string(options_.priority));
  }
}

void RealtimeFabric::loop() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    look_at_clock();
    if (has_requests_.load(std::memory_order_acquire)) execute_requests();
    const std::size_t drained = drain();
    advance_to(at_);
    if (drained < kMostFramesADrain) sleep_after(at_);
  }
}

std::size_t RealtimeFabric::drain() {
  if (!options_.virtual_time || real_offset_ns_ == 0) {
    real_offset_ns_ = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
  }
  return ring_.drain(kMostFramesADrain, [&](const ReceivedFrame& received) { accept(received); });
}

void RealtimeFabric::accept(const ReceivedFrame& received) {
  const auto ifindex = static_cast<std::size_t>(received.ifindex);
  const NicId source = ifindex < nic_of_ifindex_.size() ? nic_of_ifindex_[ifindex] : kNone;
  if (source == kNone) return;  // the loopback of the fabric's own namespace
  if (!received.whole) {
    ++health_.oversized;
    return;
  }
  const auto frame = received.bytes.subspan(FrameSlot::kHeader);
  if (received.tagged || has_vlan_tag(frame)) {
    ++health_.vlan_tagged;
    return;
  }
  const auto flow = five_tuple(frame);
  if (!flow) {
    ++health_.not_ipv4;
    return;
  }
  const NicId destination = network_.router().find_nic(flow->dst);
  if (destination == kNone) {
    ++health_.no_such_host;
    return;
  }
  const PacketId id = network_.pool().acquire();
  if (id == kNone) {
    ++health_.no_memory;
    return;
  }
  FrameSlot& slot = frames_[id];
  slot.length = static_cast<std::uint16_t>(received.bytes.size() - FrameSlot::kHeader);
  std::copy(received.bytes.begin(), received.bytes.end(), slot.bytes.begin());
  Packet& packet = network_.pool()[id];
  packet.kind = Kind::packet;
  packet.size_bytes = slot.length;
  packet.ecn = ecn_of(slot.frame());
  packet.dscp = dscp_of(slot.frame()) & kDscpBits;
  packet.owner = destination;
  if (network_.pool().ranks_packets()) network_.pool().precedence(id) = {rank_of(slot.frame()), flow_hash(*flow)};
  network_.route(id, source, destination, *flow);
  network_.inject(id, fabric_time(received.realtime_ns), *this);
}

void RealtimeFabric::advance_to(Time at) {
  while (next_sample_ <= at) {
    network_.run_until(next_sample_, *this);
    sample_queues(next_sample_);
    next_sample_ += options_.sample_interval;
  }
  network_.run_until(at, *this);
  flush();
}

void RealtimeFabric::sample_queues(Time at) {
  const std::int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
  network_.settle(at);
  QueueSample& sample = samples_.emplace_back();
  sample.when = at;
  sample.lengths.reserve(network_.ports().size());
  for (const Port& port : network_.ports()) sample.lengths.push_back(port.queued_pkts());
  health_.sampling_ns += clock_ns(CLOCK_MONOTONIC) - start_ns;
}

void RealtimeFabric::deliver(PacketId id, Time due) {
  FrameSlot& slot = frames_[id];
  const NicId nic = network_.pool()[id].owner;
  std::copy(ends_[nic].mac.begin(), ends_[nic].mac.end(), slot.frame());
  if (network_.pool()[id].ecn == Ecn::ce) mark_ce(slot.frame());
  batch_.add(ends_[nic].ifindex, slot);
  in_batch_.push_back({id, due});
  if (batch_.full()) flush();
}

void RealtimeFabric::dropped(PacketId id, PortId /*port*/, Time /*when*/) { network_.pool().release(id); }

void RealtimeFabric::flush() {
  if (batch_.empty()) return;
  health_.send_refused += batch_.flush();
  const Time done = clock_.at(now_ns());
  for (const Departing& frame : in_batch_) {
    lateness_.record((done - frame.due) / kNanosecond);
    network_.pool().release(frame.id);
  }
  in_batch_.clear();
}

void RealtimeFabric::sleep_after(Time at) {
  const Time due = std::min(network_.next_due(), next_sample_);
  const Time until = std::min(std::max(due, at + options_.quantum), at + kLongestSleep);
  awaited_ns_ = clock_.real_ns(until);
  on_the_dot_ = false;
  if (until - at < kWorthPolling) {
    const timespec deadline = to_timespec(awaited_ns_);
    const int interrupted = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr);
    on_the_dot_ = options_.virtual_time && interrupted == 0;
    return;
  }
  const timespec timeout = to_timespec(std::max(awaited_ns_ - clock_ns(CLOCK_MONOTONIC), std::int64_t{0}));
  std::array<pollfd, 2> ready{{{ring_.fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  ppoll(ready.data(), ready.size(), &timeout, nullptr);
  eventfd_t ignored = 0;
  if (ready[1].revents != 0) eventfd_read(wake_.get(), &ignored);
}

template <class Work>
void RealtimeFabric::on_thread(Work work) {
  std::packaged_task<void()> task(std::move(work));
  std::future<void> done = task.get_future();
  {
    const std::scoped_lock lock(requests_mutex_);
    if (thread_.joinable() && !finished_) {
      requests_.push_back(std::move(task));
      has_requests_.store(true, std::memory_order_release);
    }
  }
  if (task.valid()) {
    if (failure_) std::rethrow_exception(failure_);
    task();
  } else {
    wake();
  }
  done.get();
}

void RealtimeFabric::execute_requests() {
  std::vector<std::packaged_task<void()>> requests;
  {
    const std::scoped_lock lock(requests_mutex_);
    requests.swap(requests_);
    has_requests_.store(false, std::memory_order_release);
  }
  for (auto& request : requests) request();
}

Snapshot RealtimeFabric::snapshot() {
  Snapshot result;
  const std::span<const Port> ports = network_.ports();
  // Memory is allocated, and touched for the first time, here and not on the fabric's thread.
  result.ports.resize(ports.size());
  result.queued_pkts.resize(ports.size());
  on_thread([&] {
    const std::int64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    result.now = at_;
    network_.settle(at_);
    result.totals = network_.totals();
    result.health = health_;
    result.health.ring_drops = ring_.drops();
    if (!finished_) result.health.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (std::size_t i = 0; i < ports.size(); ++i) {
      result.ports[i] = network_.counters(static_cast<PortId>(i));
      result.queued_pkts[i] = ports[i].queued_pkts();
    }
    result.lateness = lateness_.bins();
    result.in_flight = network_.pool().in_use();
    result.pauses = clock_.pauses();
    result.unheld_ns = unheld_ns_;
    health_.sampling_ns += clock_ns(CLOCK_MONOTONIC) - start_ns;
  });
  for (std::size_t i = 0; probe_ && i < probe_->cpus(); ++i) {
    result.wakeups.push_back({options_.probed_cpus[i], probe_->longest_ns(i), probe_->histogram(i)});
  }
  return result;
}

std::vector<PortId> RealtimeFabric::deadlocked() {
  std::vector<PortId> result;
  on_thread([&] { result = network_.deadlocked(); });
  return result;
}

std::vector<QueueSample> RealtimeFabric::take_samples() {
  std::vector<QueueSample> result;
  on_thread([&] { std::swap(result, samples_); });
  return result;
}

void RealtimeFabric::sample_every(Time interval) {
  on_thread([&] {
    options_.sample_interval = interval;
    next_sample_ = interval > 0 ? at_ + interval : kNever;
  });
}

void RealtimeFabric::check(PortId port) const {
  if (port >= network_.ports().size()) throw std::out_of_range("there is no port " + std::to_string(port));
}

void RealtimeFabric::set_port_rate(PortId port, std::int64_t rate_bps) {
  check(port);
  on_thread([&] {
    advance_to(at_);
    network_.set_port_rate(port, rate_bps);
  });
}

void RealtimeFabric::set_port_up(PortId port, bool up) {
  check(port);
  on_thread([&] {
    advance_to(at_);
    network_.set_port_up(port, up, at_, *this);
  });
}

void RealtimeFabric::reroute(ForwardingTable table) {
  on_thread([&] {
    advance_to(at_);
    network_.reroute(std::move(table));
  });
}

void RealtimeFabric::set_path(const FiveTuple& flow, const Path& path) {
  on_thread([&] { network_.router().choose(flow, path); });
}

void RealtimeFabric::clear_path(const FiveTuple& flow) {
  on_thread([&] { network_.router().leave_to_routing(flow); });
}

void RealtimeFabric::restart_maxima() {
  on_thread([&] {
    network_.settle(at_);
    network_.restart_max_queues();
    clock_.restart_longest();
  });
}

}  // namespace fabric
