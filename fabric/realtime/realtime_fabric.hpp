// The fabric on the real clock, between the veth ends of real hosts: one thread, no locks on its path.
//
// Every frame carries the kernel's reception time into its host's NIC queue, and every hop happens at
// its exact due time of the fabric's own clock; the thread only has to be on time at the last one, when
// the frame enters the destination host. How late that was is recorded for every frame.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "core/network.hpp"
#include "realtime/frame.hpp"
#include "realtime/histogram.hpp"
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
};

struct Health {
  std::uint64_t ring_drops = 0;      // frames the kernel could not hand over
  std::uint64_t send_refused = 0;    // frames the kernel would not take back
  std::uint64_t not_ipv4 = 0;        // frames of another protocol, not carried
  std::uint64_t no_such_host = 0;    // frames to an address nobody has
  std::uint64_t oversized = 0;       // several segments in one frame: offloads are on
  std::uint64_t no_memory = 0;       // frames that found no descriptor
  std::int64_t cpu_ns = 0;           // used by the thread
  std::int64_t sampling_ns = 0;      // of that, for reading counters and queues
};

struct Snapshot {
  Time now = 0;
  Totals totals;
  Health health;
  std::vector<PortCounters> ports;
  std::vector<std::uint32_t> queued_pkts;
  std::array<std::uint64_t, Histogram::kBins> lateness{};
  std::size_t in_flight = 0;
};

// Every port's queue at one instant. One allocation each: the fabric's thread never moves old ones.
struct QueueSample {
  Time when = 0;
  std::vector<std::uint32_t> lengths;
};

class RealtimeFabric {
 public:
  // Opens its sockets in the calling thread's network namespace. One host end a NIC.
  RealtimeFabric(NetworkConfig config, std::vector<HostEnd> ends, RealtimeOptions options);
  RealtimeFabric(const RealtimeFabric&) = delete;
  RealtimeFabric& operator=(const RealtimeFabric&) = delete;
  ~RealtimeFabric();

  void start();
  void stop();

  Snapshot snapshot();
  std::vector<QueueSample> take_samples();
  // From now on every `interval`; 0 for no more.
  void sample_every(Time interval);
  void set_port_up(PortId port, bool up);
  void set_port_rate(PortId port, std::int64_t rate_bps);
  void restart_max_queues();
  // Packets that come in from now on; those under way go on as they began.
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
  std::size_t drain(Time at);
  void accept(const ReceivedFrame& received, Time at);
  void advance_to(Time at);
  void sample_queues(Time at);
  void flush();
  void sleep_after(Time at);
  void execute_requests();
  void apply_scheduling() const;
  void wake() const;
  [[nodiscard]] Time now() const;

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
  std::int64_t epoch_ns_ = 0;       // CLOCK_MONOTONIC when fabric time was 0
  std::int64_t real_epoch_ns_ = 0;  // CLOCK_REALTIME at that instant, as it is set now
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
