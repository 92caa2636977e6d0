#include "host_io/pinger.hpp"

#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>

#include "realtime/thread_scheduling.hpp"

namespace fabric {

namespace {

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int64_t kLongestWaitMs = 1000;
// The thread checks for work at most this many times per interval. Nothing measured depends on it, and at 1000 pings
// per second waking up for each packet would cost three times the CPU time.
constexpr std::int64_t kLooksAnInterval = 50;
constexpr std::size_t kEvents = 256;
constexpr std::uint64_t kWake = ~std::uint64_t{0};

std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

std::string name_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data()) + ":" + std::to_string(ntohs(address.sin_port));
}

bool worth_another_try(int error) { return error == EAGAIN || error == EINTR || error == ENOBUFS; }

// The kernel's reception time on CLOCK_MONOTONIC, or now where it gave none.
std::int64_t arrival_ns(msghdr& message) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS) {
      timespec stamp{};
      std::memcpy(&stamp, CMSG_DATA(header), sizeof stamp);
      return to_ns(stamp) + now_ns() - clock_ns(CLOCK_REALTIME);
    }
  }
  return now_ns();
}

}  // namespace

struct Pinger::Payload {
  enum Kind : std::uint32_t { kAsk = 1, kAnswer = 2 };

  std::uint64_t magic;
  std::uint64_t seq;
  std::int64_t sent_ns;
  std::int64_t arrived_ns;   // at the answerer, by its kernel
  std::int64_t answered_ns;  // by the answerer
  std::uint32_t kind;
  std::array<std::uint8_t, 20> unused;
};

struct Pinger::Arrival {
  Payload payload;
  sockaddr_in from;
  std::int64_t at_ns;
};

Pinger::Pinger(std::vector<FileDescriptor> sockets, std::vector<PingProbe> probes, PingOptions options)
    : sockets_(std::move(sockets)), probes_(std::move(probes)), options_(options),
      epoll_(epoll_create1(EPOLL_CLOEXEC), "epoll_create1"), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"),
      magic_(std::random_device{}() | std::uint64_t{std::random_device{}()} << 32) {
  static_assert(sizeof(Payload) == 64);
  if (options_.interval_ns <= 0) throw std::invalid_argument("the interval between pings must be above 0");
  const auto watch = [&](int fd, std::uint64_t tag) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = tag;
    checked_call(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event), "watching a ping socket");
  };
  watch(wake_.get(), kWake);
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const int yes = 1;
    checked_call(setsockopt(sockets_[i].get(), SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes),
                 "asking for reception times on a ping socket");
    watch(sockets_[i].get(), i);
  }
  for (const PingProbe& probe : probes_) {
    if (probe.socket >= sockets_.size()) throw std::invalid_argument("a probe names a socket that does not exist");
  }
}

Pinger::~Pinger() { stop(); }

void Pinger::start() {
  if (finished_ || thread_.joinable()) throw std::logic_error("a pinger can be started once");
  round_ns_ = now_ns();
  thread_ = std::thread([this] { run(); });
}

void Pinger::wake() const { eventfd_write(wake_.get(), 1); }

void Pinger::resume() {
  paused_ = false;
  wake();
}

void Pinger::stop() {
  stopping_ = true;
  wake();
  if (thread_.joinable()) thread_.join();
}

std::vector<Ping> Pinger::take(bool all) {
  const std::scoped_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  std::vector<Ping> found;
  const std::int64_t lost_before = now_ns() - options_.lost_after_ns;
  for (Ping& ping : pings_) {
    if (ping.taken || !(all || ping.answered() || ping.sent_ns < lost_before)) continue;
    found.push_back(ping);
    ping.taken = true;
  }
  while (!pings_.empty() && pings_.front().taken) {
    pings_.pop_front();
    ++first_seq_;
  }
  return found;
}

std::int64_t Pinger::cpu_ns() {
  const std::scoped_lock lock(mutex_);
  clockid_t clock{};
  if (finished_ || !thread_.joinable() || pthread_getcpuclockid(thread_.native_handle(), &clock) != 0) return cpu_ns_;
  return clock_ns(clock);
}

void Pinger::run() {
  std::exception_ptr failure;
  try {
    pthread_setname_np(pthread_self(), "pinger");
    if (options_.cpu >= 0) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(static_cast<std::size_t>(options_.cpu), &set);
      checked_call(-pthread_setaffinity_np(pthread_self(), sizeof set, &set),
                   "pinning the pings to CPU " + std::to_string(options_.cpu));
    }
    loop();
  } catch (...) {
    failure = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  failure_ = failure;
  finished_ = true;
  cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void Pinger::loop() {
  std::array<epoll_event, kEvents> events{};
  const timespec tick{0, std::min(options_.interval_ns / kLooksAnInterval, 20 * kNsPerMs)};
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::int64_t now = now_ns();
    send_due(now);
    const std::int64_t wait_ms = (due_ns() - now + kNsPerMs - 1) / kNsPerMs;
    const int timeout = static_cast<int>(std::clamp(wait_ms, std::int64_t{0}, kLongestWaitMs));
    const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    if (count < 0 && errno != EINTR) throw_errno("waiting for pings");
    for (int i = 0; i < count; ++i) {
      const std::uint64_t tag = events[static_cast<std::size_t>(i)].data.u64;
      if (tag == kWake) {
        eventfd_t ignored = 0;
        eventfd_read(wake_.get(), &ignored);
      } else {
        receive(static_cast<std::size_t>(tag));
      }
    }
    clock_nanosleep(CLOCK_MONOTONIC, 0, &tick, nullptr);
  }
}

std::int64_t Pinger::due_ns() const {
  if (probes_.empty() || paused_) return now_ns() + kNsPerSecond;
  const auto count = static_cast<std::int64_t>(probes_.size());
  return round_ns_ + options_.interval_ns / count * next_ + options_.interval_ns % count * next_ / count;
}

// Sends what is due by `now`. Pings that the thread has missed, beyond one round, are not sent later in a burst.
void Pinger::send_due(std::int64_t now) {
  if (probes_.empty() || paused_) return;
  const std::int64_t late = now - due_ns();
  if (late > options_.interval_ns) round_ns_ += late;
  while (due_ns() <= now) {
    send_ping(next_);
    if (++next_ == probes_.size()) {
      next_ = 0;
      round_ns_ += options_.interval_ns;
    }
  }
}

void Pinger::send_ping(std::uint32_t probe) {
  const PingProbe& way = probes_[probe];
  Payload payload{};
  payload.magic = magic_;
  payload.kind = Payload::kAsk;
  {
    const std::scoped_lock lock(mutex_);
    payload.sent_ns = now_ns();
    payload.seq = first_seq_ + pings_.size();
    pings_.push_back({.sent_ns = payload.sent_ns, .probe = probe});
  }
  const auto sent = sendto(sockets_[way.socket].get(), &payload, sizeof payload, MSG_DONTWAIT,
                           reinterpret_cast<const sockaddr*>(&way.to), sizeof way.to);
  if (sent < 0 && !worth_another_try(errno)) throw_errno("sending a ping to " + name_of(way.to));
}

void Pinger::receive(std::size_t socket) {
  Arrival arrival{};
  iovec buffer{&arrival.payload, sizeof arrival.payload};
  alignas(cmsghdr) std::array<std::uint8_t, 128> control{};
  msghdr message{};
  message.msg_name = &arrival.from;
  message.msg_namelen = sizeof arrival.from;
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto length = recvmsg(sockets_[socket].get(), &message, MSG_DONTWAIT);
  if (length < 0) {
    if (worth_another_try(errno)) return;
    throw_errno("receiving a ping");
  }
  if (length != sizeof arrival.payload || arrival.payload.magic != magic_) return;
  arrival.at_ns = arrival_ns(message);
  if (arrival.payload.kind == Payload::kAsk) {
    answer(socket, arrival);
  } else {
    note(arrival);
  }
}

void Pinger::answer(std::size_t socket, Arrival& arrival) {
  arrival.payload.kind = Payload::kAnswer;
  arrival.payload.arrived_ns = arrival.at_ns;
  arrival.payload.answered_ns = now_ns();
  const auto sent = sendto(sockets_[socket].get(), &arrival.payload, sizeof arrival.payload, MSG_DONTWAIT,
                           reinterpret_cast<const sockaddr*>(&arrival.from), sizeof arrival.from);
  if (sent < 0 && !worth_another_try(errno)) throw_errno("answering a ping of " + name_of(arrival.from));
}

void Pinger::note(const Arrival& arrival) {
  const Payload& payload = arrival.payload;
  const std::scoped_lock lock(mutex_);
  if (payload.seq < first_seq_ || payload.seq - first_seq_ >= pings_.size()) return;
  Ping& ping = pings_[payload.seq - first_seq_];
  if (ping.taken || ping.answered() || arrival.at_ns - ping.sent_ns > options_.lost_after_ns) return;
  ping.out_ns = std::max(std::int64_t{0}, payload.arrived_ns - ping.sent_ns);
  ping.back_ns = std::max(std::int64_t{0}, arrival.at_ns - payload.answered_ns);
}

}  // namespace fabric
