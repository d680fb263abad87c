#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "trireme/wire/transport/poller.h"
#include "trireme/wire/transport/posted.h"
#include "trireme/wire/transport/shm/process_memory.h"
#include "trireme/wire/transport/tcp/carrier.h"
#include "trireme/wire/transport/tcp/frame_reader.h"
#include "trireme/wire/transport/tcp/frame_writer.h"
#include "trireme/wire/transport/tcp/trouble.h"

namespace trireme::transport::internal {

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
/// A world that fails gives its memory back. So after the payload the receiver reads the sender's
/// word `lends_`: only if that still stands was the memory what was offered.
///
/// Whatever ends the world is thrown as an Error; `abandon` must follow, on all peers.
///
/// Threads  confined to the progress thread.
// clang-format on
class Peer final : private FrameHandler {
 public:
  /// notes, carrier   outlive it. carrier: may be null.
  /// memory           of the peer's process, where this one can read it.
  Peer(int rank, Descriptor socket, NoteBoard& notes, Carrier* carrier,
       std::optional<ProcessMemory> memory)
      : rank_(rank), socket_(std::move(socket)), notes_(notes), carrier_(carrier), memory_(memory) {
    if (memory) tell_that_it_reads();
  }

  // Throw kPeerLost where the peer has said goodbye.
  void post_send(Tag tag, PostedSend send);
  void post_recv(Tag tag, PostedRecv recv);

  void tell(Tag tag, const Envelope& note);

  void say_goodbye() { writer_.queue_control({.kind = FrameKind::kGoodbye}); }

  /// As far as possible without blocking. Errors of this connection name the peer.
  void read();
  void write();

  /// Throws what went wrong in reading its memory, unless its connection has told within 1 s.
  void check() const { trouble_.check(); }
  Deadline next_check() const { return trouble_.due(); }

  /// The world has failed: sends `poison` (error_form.h), drops what arrives from now on, and lets
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
  struct Incoming {
    Tag tag;
    std::span<std::byte> memory;
    PendingWorkPtr work;
    std::size_t num_received;
  };

  std::span<std::byte> begin_frame(const Frame& frame) override;
  void end_frame(const Frame& frame) override;
  std::span<std::byte> begin_data(const Frame& frame);
  Incoming match(const Frame& frame);
  void end_data(const Frame& frame);
  void tell_that_it_reads();
  void offer_or_write(Tag tag, PostedSend send);
  void take_offer(const Frame& frame);
  void read_offered(Incoming incoming, std::uint64_t address);
  std::optional<Error> read_lent(std::uint64_t address, std::span<std::byte> memory) const;
  Offered taken_offer(bool is_readable);
  bool has_unmatched() const;
  void take_credit(Tag tag);
  void check_present() const;
  [[noreturn]] static void refuse(const std::string& problem);

  const int rank_;
  Descriptor socket_;
  NoteBoard& notes_;
  Carrier* const carrier_;
  const std::optional<ProcessMemory> memory_;
  /// Not 0 while what is offered is lent; read by the peer. A random number, so that no other word,
  /// of this process or of one that has got its number, is taken for it.
  std::atomic<std::uint64_t> lends_ = 0;
  std::optional<Lending> its_;  ///< The peer's; nothing where it cannot read here.
  FrameReader reader_;
  FrameWriter writer_;
  std::map<Tag, Stream> streams_;  ///< None of them empty.
  std::optional<Incoming> incoming_;
  std::vector<PendingWorkPtr> unread_;  ///< Whose payload could not be read.
  Trouble trouble_;
  std::vector<std::byte> poison_;
  bool has_said_goodbye_ = false;
  bool has_poisoned_ = false;
  bool has_owner_failed_ = false;  ///< In a placement or inspection; the connection is well.
  bool is_garbage_ = false;        ///< What it sends cannot be read any further.
  bool is_abandoned_ = false;
};

}  // namespace trireme::transport::internal
