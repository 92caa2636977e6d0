// The fabric on the real clock, between the veth ends of real hosts: one thread, no locks on its path.
//
// Every frame carries the kernel's reception time into its host's NIC queue, and every hop happens at
// its exact due time of the fabric's own clock; the thread only has to be on time at the last one, when
// the frame enters the destination host. How late that was is recorded for every frame.
//
// The clock is elastic: where the thread wakes up too late, or a probe finds that another CPU stood still, the
// fabric's time has stood still too (fabric_clock.hpp). With a tolerance of 0 it is always real time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/network.hpp"
#include "realtime/fabric_clock.hpp"
#include "realtime/frame.hpp"
#include "core/histogram.hpp"
#include "realtime/idle_probe.hpp"
#include "realtime/packet_socket.hpp"

namespace fabric {

struct HostEnd {
  int ifindex = 0;  // the host's veth end in the fabric's network namespace
  Mac mac{};        // of the host's own end
};

struct RealtimeOptions {
  Time quantum = 100 * kMicrosecond;  // frames and events that fall into one are handled together
  int cpu = -1;                       // pin the thread to this CPU; -1 lets it float
  int priority = 0;                   // SCHED_FIFO priority; 0 keeps the normal scheduler
  Time sample_interval = 0;           // queue lengths of all ports; 0 takes none
  Time tolerance = 0;                 // a later wake-up pauses the clock; 0: it never pauses
  Time hold = kMillisecond;           // a CPU overdue for longer holds the clock, unless that never pauses
  Time idle_hold = 0;                 // so does one that has not been idle for longer; 0: it does not
  std::vector<int> probed_cpus;       // those whose lateness is watched
  ProbeOptions probe;
  bool virtual_time = false;          // work takes no time, so after a sleep the clock is known without reading it
};

struct Health {
  std::uint64_t ring_drops = 0;      // frames the kernel could not hand over
  std::uint64_t send_refused = 0;    // frames the kernel would not take back
  std::uint64_t not_ipv4 = 0;        // frames of another protocol, not carried
  std::uint64_t vlan_tagged = 0;     // frames with a VLAN tag, not carried: the fabric would lose the tag
  std::uint64_t no_such_host = 0;    // frames to an address that no host has
  std::uint64_t oversized = 0;       // several segments in one frame: offloads are on
  std::uint64_t no_memory = 0;       // frames that found no descriptor
  std::int64_t cpu_ns = 0;           // used by the thread
  std::int64_t sampling_ns = 0;      // of that, for reading counters and queues
};

// What the probe of one CPU has seen.
struct Wakeups {
  int cpu = 0;
  std::int64_t longest_ns = 0;
  std::array<std::uint64_t, Histogram::kBins> lateness{};
};

struct Snapshot {
  Time now = 0;
  Totals totals;
  Health health;
  std::vector<PortCounters> ports;
  std::vector<std::uint32_t> queued_pkts;
  std::array<std::uint64_t, Histogram::kBins> lateness{};
  std::size_t in_flight = 0;
  FabricClock::Pauses pauses;
  std::int64_t unheld_ns = 0;  // in which some CPU had no idle time and the clock went on
  std::vector<Wakeups> wakeups;
};

// Every port's queue at one instant. One allocation each: the fabric's thread never moves old ones.
struct QueueSample {
  Time when = 0;
  std::vector<std::uint32_t> lengths;
};

class RealtimeFabric {
 public:
  // Opens its sockets in the calling thread's network namespace. One host end per NIC.
  RealtimeFabric(NetworkConfig config, std::vector<HostEnd> ends, RealtimeOptions options);
  RealtimeFabric(const RealtimeFabric&) = delete;
  RealtimeFabric& operator=(const RealtimeFabric&) = delete;
  ~RealtimeFabric();

  void start();
  void stop();

  Snapshot snapshot();
  // See Network. For the end of a measurement: the fabric's thread looks at every packet that waits.
  std::vector<PortId> deadlocked();
  std::vector<QueueSample> take_samples();
  // From now on every `interval`; 0 for no more.
  void sample_every(Time interval);
  void set_port_up(PortId port, bool up);
  void set_port_rate(PortId port, std::int64_t rate_bps);
  // For frames that come in from now on (network.hpp).
  void reroute(ForwardingTable table);
  // Restarts the maxima: the longest queues and the longest pause.
  void restart_maxima();
  // For packets that come in from now on; packets in flight keep their paths.
  void set_path(const FiveTuple& flow, const Path& path);
  void clear_path(const FiveTuple& flow);

 private:
  friend class Network;

  struct Departing {
    PacketId id;
    Time due;
  };

  void run();
  void loop();
  std::size_t drain();
  void accept(const ReceivedFrame& received);
  void advance_to(Time at);
  void sample_queues(Time at);
  void flush();
  void sleep_after(Time at);
  void execute_requests();
  void apply_scheduling() const;
  void wake() const;
  void look_at_clock();
  [[nodiscard]] std::int64_t now_ns() const;
  [[nodiscard]] std::int64_t held_ns(std::int64_t real_ns);
  [[nodiscard]] Time fabric_time(std::int64_t realtime_ns) const;

  void check(PortId port) const;

  // Runs `work` on the fabric's thread (or here, when that is not running) and waits for it.
  template <class Work>
  void on_thread(Work work);

  // Network's Hosts:
  void deliver(PacketId id, Time due);
  void alarm(PacketId, Time) {}  // asks for none
  void dropped(PacketId id, PortId port, Time when);

  RealtimeOptions options_;
  Network network_;
  std::vector<HostEnd> ends_;
  VirtualArray<FrameSlot> frames_;  // of the packet with the same id
  std::vector<NicId> nic_of_ifindex_;
  ReceiveRing ring_;
  TransmitBatch batch_;
  std::vector<Departing> in_batch_;
  FileDescriptor wake_;
  FabricClock clock_;
  std::optional<IdleProbe> probe_;
  std::optional<IdleProbe> idleness_;
  std::int64_t patience_ns_ = 0;    // for how long a CPU without idle time may still hold the clock
  std::int64_t unheld_ns_ = 0;      // for how long the clock went on although there was one
  Time at_ = 0;                     // of the turn that the thread is in
  std::int64_t awaited_ns_ = 0;     // when this turn should have begun (CLOCK_MONOTONIC)
  bool on_the_dot_ = false;         // it began exactly then: virtual time, in which a clock reading is avoided
  std::int64_t real_offset_ns_ = 0;  // CLOCK_REALTIME less CLOCK_MONOTONIC, as it is set now
  Health health_;
  Histogram lateness_;
  Time next_sample_ = kNever;
  std::vector<QueueSample> samples_;

  std::thread thread_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> has_requests_{false};
  std::mutex requests_mutex_;
  std::vector<std::packaged_task<void()>> requests_;
  bool finished_ = false;  // the thread takes no more requests
  std::exception_ptr failure_;
};

}  // namespace fabric
