#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/wire/endpoint/domains.h"
#include "trireme/wire/endpoint/matcher.h"
#include "trireme/wire/endpoint/tcp/carrier.h"
#include "trireme/wire/endpoint/tcp/frame_io.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/shared_memory.h"

namespace trireme::transport::internal {

/// What the peers of an endpoint share.
struct PeerContext {
  NoteBoard& notes;  ///< Outlives them, as do the others.
  DomainBoard& domains;
  Carrier* carrier = nullptr;                          ///< May be null.
  std::optional<ProcessMemory> memory = std::nullopt;  ///< Of the peer's process, where readable.
  Matcher* matcher = nullptr;                          ///< Null: letters are refused.
};

// clang-format off
/// The protocol with one other rank:
///
///     receiver                                 sender
///     recv posted        -- credit(tag) -->    takes the oldest send of this tag, or the next
///     placement called   <-- data(tag, 0) --   first segment
///     ...
///     work done          <-- data(tag, k) --   last segment; work done when it is written
///
/// and of a message that the carrier takes (carrier.h), after the credit:
///
///     placement called   <-- offer(tag) --     envelope and size; in the order of the messages
///     expects the payload -- accept(key) -->   of the oldest offer
///     work done          <== payload(key) ==   by the carrier; work done when it says so
///
/// and of one whose payload the receiver reads in the sender's process, where each has told the
/// other that it can (reader):
///
///     placement called   <-- offer(tag, address) --
///     reads, work done   -- taken -->              work done
///
/// A receiver that drops a message drops its segments as they come, and answers an offer of either
/// kind with `taken`.
///
/// A world that fails gives its memory back. So after the payload the receiver reads the sender's
/// word `lends_`: only if that still stands was the memory what was offered.
///
/// Whatever ends the world is thrown as an Error; `abandon` must follow, on all peers. What ends a
/// domain is kept for `take_failures`; `abandon` of that domain must follow.
///
/// Threads  confined to the progress thread.
// clang-format on
class Peer final : private FrameHandler {
 public:
  Peer(int rank, Descriptor socket, const PeerContext& context)
      : rank_(rank),
        socket_(std::move(socket)),
        notes_(context.notes),
        domains_(context.domains),
        carrier_(context.carrier),
        memory_(context.memory),
        matcher_(context.matcher) {
    if (memory_) tell_that_it_reads();
  }

  // Throw kPeerLost where the peer has said goodbye.
  void post_send(Tag tag, PostedSend send);
  void post_recv(Tag tag, PostedRecv recv);

  void tell(Tag tag, const Envelope& note);
  void write_letter(const Letter& letter);

  void say_goodbye() {
    has_left_ = true;
    writer_.queue_control({.kind = FrameKind::kGoodbye});
  }

  /// As far as possible without blocking. Errors of this connection name the peer.
  void read();
  void write();

  /// Throws what went wrong in reading its memory, unless its connection has told within 1 s; the
  /// error of a domain whose memory it still reads after 2 s.
  void check();
  Deadline next_check() const;

  /// A domain that has failed, as this peer told or by what it sent.
  struct DomainFailure {
    Tag first_tag;
    Error error;
  };
  std::vector<DomainFailure> take_failures() { return std::exchange(failures_, {}); }

  /// Throws kPeerLost where it has said goodbye and something waits for it. After `read`, when the
  /// domains that `take_failures` gave have been ended: nothing of those waits any more.
  void check_goodbye() const;

  /// A domain has failed: drops what arrives for it from now on, and lets go of its memory. `works`
  /// gets its works, to be failed; those that the peer reads, or the carrier has, end by themselves.
  void abandon(Tag first_tag, const Error& error, std::vector<PendingWorkPtr>& works);

  /// Tells the peer; error: in bytes.
  void tell_failure(Tag first_tag, const std::vector<std::byte>& error);

  /// Sends that this rank is alive, where nothing else was queued since the last call.
  void tell_alive();

  /// Its process has ended. If its connection says nothing else within 0.2 s, the rank is lost: a
  /// child of the process may have inherited the other end.
  void note_end_of_process();

  /// Whether something has arrived since the last call.
  bool was_heard() { return std::exchange(has_heard_, false); }

  /// The world has failed: sends `poison` (byte_form.h), drops what arrives from now on, and lets
  /// go of all memory that is lent. `works` gets the works, to be failed.
  void abandon(const std::vector<std::byte>& poison, std::vector<PendingWorkPtr>& works);

  const Descriptor& socket() const { return socket_; }
  void close() { socket_.reset(); }

  /// Something is left to be written.
  bool wants_to_write() const { return socket_.is_open() && !writer_.is_idle(); }
  bool has_work() const;
  bool has_said_goodbye() const { return has_said_goodbye_; }

  /// After a failure: it knows, or cannot be told any more.
  bool knows_failure() const { return has_poisoned_ || !socket_.is_open(); }

  Poller::Interest interest;  ///< As registered.

 private:
  /// The word that says whether what is offered is lent: where it is, and its value while it is.
  struct Lending {
    std::uint64_t address;
    std::uint64_t word;
  };
  /// Works of a failed domain that end by themselves.
  struct Ending {
    std::vector<PendingWorkPtr> works;
    Error error;
    Deadline until;
  };
  struct Incoming {
    Tag tag;
    std::optional<std::span<std::byte>> memory;  ///< Nothing: dropped.
    PendingWorkPtr work;
    std::size_t message_bytes;
    std::size_t num_received;
  };

  std::span<std::byte> begin_frame(const Frame& frame) override;
  void end_frame(const Frame& frame) override;
  std::span<std::byte> begin_data(const Frame& frame);
  Incoming match(const Frame& frame);
  std::optional<std::span<std::byte>> place(const PostedRecv& recv, const Frame& frame);
  void carry(Tag tag, const PendingWorkPtr& work);
  void end_data(const Frame& frame);
  void tell_that_it_reads();
  void offer_or_write(Tag tag, PostedSend send);
  void take_offer(const Frame& frame);
  void read_offered(Incoming incoming, std::uint64_t address);
  std::optional<Error> read_lent(std::uint64_t address, std::span<std::byte> memory) const;
  Offered taken_offer();
  bool has_unmatched() const;
  void take_credit(Tag tag);
  void take_letter(const Frame& frame);
  void check_present() const;
  [[noreturn]] static void refuse(const std::string& problem);

  const int rank_;
  Descriptor socket_;
  NoteBoard& notes_;
  DomainBoard& domains_;
  Carrier* const carrier_;
  const std::optional<ProcessMemory> memory_;
  Matcher* const matcher_;
  /// Not 0 while what is offered is lent; read by the peer. A random number, so that no other word,
  /// of this process or of one that has got its number, is taken for it.
  std::atomic<std::uint64_t> lends_ = 0;
  std::optional<Lending> its_;  ///< The peer's; nothing where it cannot read here.
  FrameReader reader_;
  FrameWriter writer_;
  std::map<Tag, PostedMessages> posted_;  ///< None of them empty.
  std::optional<Incoming> incoming_;
  std::vector<PendingWorkPtr> unread_;  ///< Whose payload could not be read.
  Trouble trouble_;
  std::vector<DomainFailure> failures_;
  std::vector<std::pair<Tag, PendingWorkPtr>> carried_;  ///< That the carrier has; some have ended.
  std::vector<Ending> endings_;
  std::vector<std::byte> payload_;  ///< Of a poison, a failure, a letter.
  bool has_heard_ = false;
  bool has_said_goodbye_ = false;
  bool has_left_ = false;  ///< This rank has said goodbye.
  bool has_poisoned_ = false;
  bool has_owner_failed_ = false;  ///< In a placement or inspection; the connection is well.
  bool is_garbage_ = false;        ///< What it sends cannot be read any further.
  bool is_abandoned_ = false;
};

/// Whether the ranks of other hosts are alive: each tells the others when it has been silent for a
/// while. A connection may stay open beyond the end of its process, where a child has inherited it.
///
/// A rank that was heard once and then is silent for kMostSilent intervals, 7.5 to 9 s, is lost, be
/// it that its process was stopped. If this process was stopped itself, silence counts anew.
///
/// Threads  confined to the progress thread.
class Liveness {
 public:
  static constexpr std::chrono::milliseconds kInterval{1500};
  static constexpr int kMostSilent = 5;

  /// Of a rank whose process this host does not see.
  void add(int rank) { silent_.emplace(rank, kNeverHeard); }

  bool is_due() const { return !silent_.empty() && Clock::now() >= next_; }
  Deadline next() const { return silent_.empty() ? Deadline::max() : next_; }

  /// Tells and counts, once per interval. Throws kPeerLost.
  void look(std::map<int, Peer>& peers) {
    const Deadline now = Clock::now();
    const bool was_stopped = now > next_ + kInterval;
    next_ = now + kInterval;
    for (auto& [rank, count] : silent_) {
      Peer& peer = peers.at(rank);
      peer.tell_alive();
      const bool is_heard = peer.was_heard();
      if (is_heard || (was_stopped && count != kNeverHeard)) {
        count = 0;
      } else if (count != kNeverHeard && !peer.has_said_goodbye()) {
        ++count;
        if (count >= kMostSilent) throw lost_rank(rank, silence());
      }
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kNeverHeard = -1;

  static std::string silence() {
    return "it was silent for " + std::to_string(kMostSilent * kInterval.count()) + " ms";
  }

  std::map<int, int> silent_;  ///< Intervals, by rank.
  Deadline next_ = Clock::now() + kInterval;
};

}  // namespace trireme::transport::internal
