// The scoreboard of RFC 6675: what a sender knows about the segments from the first unacknowledged to the last sent.
//
// A segment is sacked, lost (and perhaps retransmitted), or in the network. A segment is lost when enough segments sent
// later have arrived: originals are compared by sequence number, retransmissions by the order of transmissions, which
// acknowledgements echo.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "simulation/segment.hpp"

namespace fabric {

class Scoreboard {
 public:
  [[nodiscard]] Seq una() const { return una_; }
  [[nodiscard]] Seq next() const { return next_; }
  [[nodiscard]] std::uint32_t outstanding() const { return next_ - una_; }
  // Packets thought to be in the network (RFC 6675, section 4).
  [[nodiscard]] std::uint32_t pipe() const { return outstanding() - sacked_ - lost_ + retransmitted_; }
  [[nodiscard]] bool something_lost() const { return lost_ > retransmitted_; }
  [[nodiscard]] std::uint32_t sacked() const { return sacked_; }
  // Segments found lost so far, a retransmission that is lost again included, and without timeouts.
  [[nodiscard]] std::uint32_t losses() const { return losses_; }
  [[nodiscard]] Seq dsn(Seq seq) const { return at(seq).dsn; }

  // Records a new segment with this part of the connection's data. Returns its number.
  Seq send_new(Seq dsn, std::uint32_t order) {
    if (outstanding() == ring_.size()) grow();
    at(next_) = {dsn, order << kFlagBits};
    return next_++;
  }

  // Records a retransmission of the first lost segment, and returns its number. There must be one.
  Seq retransmit(std::uint32_t order) {
    Seq seq = retransmit_from_;
    while ((at(seq).state & (kLost | kRetransmitted)) != kLost) ++seq;
    retransmit_from_ = seq + 1;
    Entry& entry = at(seq);
    entry.state = order << kFlagBits | (entry.state & kFlags) | kRetransmitted | kEverRetransmitted;
    ++retransmitted_;
    retransmissions_.push_back({seq, order});
    return seq;
  }

  // Everything below `seq` has arrived. Returns how many segments are newly known to have arrived.
  std::uint32_t acknowledge(Seq seq) {
    std::uint32_t fresh = 0;
    for (; una_ != seq; ++una_) {
      const Entry& entry = at(una_);
      if ((entry.state & kSacked) == 0) {
        note_order(una_, entry);
      } else if (!before(una_, judged_)) {
        --sacked_ahead_;
      }
      fresh += forget(entry) ? 1 : 0;
    }
    if (before(retransmit_from_, una_)) retransmit_from_ = una_;
    if (before(judged_, una_)) judged_ = una_;
    if (before(sacked_end_, una_)) sacked_end_ = una_;
    return fresh;
  }

  // The receiver holds these. Returns how many are newly known to have arrived.
  std::uint32_t sack(SackBlock block) {
    std::uint32_t fresh = 0;
    if (before(block.first, una_)) block.first = una_;
    if (before(next_, block.end)) block.end = next_;
    for (Seq seq = block.first; before(seq, block.end); ++seq) {
      Entry& entry = at(seq);
      if ((entry.state & kSacked) != 0) continue;
      note_order(seq, entry);
      forget(entry);
      entry.state = kSacked;
      ++sacked_;
      if (!before(seq, judged_)) ++sacked_ahead_;
      ++fresh;
    }
    if (before(sacked_end_, block.end)) sacked_end_ = block.end;
    return fresh;
  }

  // Segments with `threshold` sacked ones above them are lost (RFC 6675, section 4, IsLost). So are retransmissions if
  // a transmission that has arrived was made `threshold` transmissions later.
  void detect_losses(std::uint32_t threshold, std::uint32_t delivered_order) {
    for (; sacked_ahead_ >= threshold; ++judged_) {
      if ((at(judged_).state & kSacked) != 0) {
        --sacked_ahead_;
      } else {
        lose(judged_);
      }
    }
    while (!retransmissions_.empty() && retransmissions_[log_head_].order + threshold <= delivered_order) {
      const Retransmission& latest = retransmissions_[log_head_];
      if (!before(latest.seq, una_) && at(latest.seq).is_of(latest.order)) lose_again(latest.seq);
      if (++log_head_ == retransmissions_.size()) clear_log();
    }
  }

  // After a timeout: nothing is assumed to be in the network.
  void lose_all() {
    for (Seq seq = una_; seq != next_; ++seq) {
      Entry& entry = at(seq);
      if ((entry.state & kSacked) != 0) continue;
      entry.state = (entry.state & ~(kFlags & ~kKept)) | kLost;
    }
    lost_ = outstanding() - sacked_;
    retransmitted_ = 0;
    retransmit_from_ = una_;
    judged_ = next_;
    sacked_ahead_ = 0;
    clear_log();
  }

  // They were only late: segments that were not retransmitted no longer count as lost.
  void lose_none() {
    for (Seq seq = una_; seq != next_; ++seq) {
      Entry& entry = at(seq);
      if ((entry.state & (kLost | kRetransmitted)) != kLost) continue;
      entry.state &= ~kLost;
      --lost_;
    }
    judged_ = una_;
    sacked_ahead_ = sacked_;
  }

  // Calls `each` with the data of every segment that is not known to have arrived, once per segment.
  template <class Each>
  void each_to_reinject(Each each) {
    for (Seq seq = una_; seq != next_; ++seq) {
      Entry& entry = at(seq);
      if ((entry.state & (kSacked | kReinjected)) != 0) continue;
      entry.state |= kReinjected;
      each(entry.dsn);
    }
  }

  // Brings into the cache what an acknowledgement and the next segment will touch.
  void prefetch() const {
    if (ring_.empty()) return;
    prefetch_to_write(&at(una_));
    prefetch_to_write(&at(next_));
  }

  // The largest distance, since the last call, by which a segment sent once arrived behind the highest known.
  [[nodiscard]] std::uint32_t take_reordering() { return std::exchange(reordering_, 0); }

  // All data has arrived, perhaps by other subflows: no segment is outstanding any more.
  void close() {
    una_ = sacked_end_ = judged_ = retransmit_from_ = next_;
    sacked_ = sacked_ahead_ = lost_ = retransmitted_ = 0;
    clear_log();
    retransmissions_.shrink_to_fit();
    ring_ = {};
  }

 private:
  static constexpr int kFlagBits = 5;
  static constexpr std::uint32_t kFlags = (1U << kFlagBits) - 1;
  static constexpr std::uint32_t kSacked = 1, kLost = 2, kRetransmitted = 4, kEverRetransmitted = 8, kReinjected = 16;
  static constexpr std::uint32_t kKept = kEverRetransmitted | kReinjected;  // for life

  struct Entry {
    Seq dsn;
    std::uint32_t state;  // flags, and above them the number of its latest transmission, modulo 2^27

    [[nodiscard]] bool is_of(std::uint32_t order) const { return (state >> kFlagBits) == (order << kFlagBits >> kFlagBits); }
  };
  struct Retransmission {
    Seq seq;
    std::uint32_t order;
  };

  Entry& at(Seq seq) { return ring_[seq & (ring_.size() - 1)]; }
  [[nodiscard]] const Entry& at(Seq seq) const { return ring_[seq & (ring_.size() - 1)]; }

  // Removes a segment from all counts. Returns false if it had been sacked.
  bool forget(const Entry& entry) {
    sacked_ -= (entry.state & kSacked) != 0 ? 1 : 0;
    lost_ -= (entry.state & kLost) != 0 ? 1 : 0;
    retransmitted_ -= (entry.state & kRetransmitted) != 0 ? 1 : 0;
    return (entry.state & kSacked) == 0;
  }

  void lose(Seq seq) {
    Entry& entry = at(seq);
    if ((entry.state & (kSacked | kLost)) != 0) return;
    entry.state |= kLost;
    ++lost_;
    ++losses_;
    if (before(seq, retransmit_from_)) retransmit_from_ = seq;
  }

  void lose_again(Seq seq) {
    Entry& entry = at(seq);
    if ((entry.state & kRetransmitted) == 0) return;
    entry.state &= ~kRetransmitted;
    --retransmitted_;
    ++losses_;
    if (before(seq, retransmit_from_)) retransmit_from_ = seq;
  }

  void note_order(Seq seq, const Entry& entry) {
    if (!before(seq, sacked_end_) || (entry.state & kEverRetransmitted) != 0) return;
    reordering_ = std::max(reordering_, sacked_end_ - seq);
  }

  void clear_log() {
    retransmissions_.clear();
    log_head_ = 0;
  }

  void grow() {
    std::vector<Entry> wider(std::max<std::size_t>(ring_.size() * 2, 8));
    for (Seq seq = una_; seq != next_; ++seq) wider[seq & (wider.size() - 1)] = at(seq);
    ring_ = std::move(wider);
  }

  Seq una_ = 0;
  Seq next_ = 0;
  std::uint32_t sacked_ = 0;
  std::uint32_t lost_ = 0;
  std::uint32_t retransmitted_ = 0;
  std::uint32_t losses_ = 0;
  std::uint32_t sacked_ahead_ = 0;  // from `judged_` on
  std::uint32_t reordering_ = 0;
  Seq sacked_end_ = 0;   // one past the highest sacked
  Seq judged_ = 0;       // all below are, or were, sacked or lost
  Seq retransmit_from_ = 0;  // none below waits for retransmission
  std::size_t log_head_ = 0;
  std::vector<Retransmission> retransmissions_;  // in the order of transmission
  std::vector<Entry> ring_;
};

}  // namespace fabric
