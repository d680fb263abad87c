#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "trireme/wire/endpoint/domains.h"
#include "trireme/wire/endpoint/endpoint.h"
#include "trireme/wire/endpoint/messages.h"
#include "trireme/wire/endpoint/work.h"

namespace trireme::transport {

struct PostedSend {
  std::span<const std::byte> data;
  Envelope envelope;
  PendingWorkPtr work;
};

struct PostedRecv {
  Placement place;
  Inspection inspect;  ///< May be none.
  PendingWorkPtr work;
};

/// What is posted for one (sender, receiver, tag) and not matched yet, oldest first.
struct PostedMessages {
  std::deque<PostedSend> sends;
  std::deque<PostedRecv> recvs;
  std::uint64_t num_credits = 0;  ///< Recvs posted by a remote receiver.

  bool is_empty() const { return sends.empty() && recvs.empty() && num_credits == 0; }
};

/// Throws kInvalidArgument where `peer` is no rank of the endpoint's world.
void check_peer(int peer, const Endpoint& endpoint);

/// kTimeout of a shutdown of `rank`: `missing` did not say goodbye.
Error missing_goodbyes(int rank, const std::vector<int>& missing,
                       std::chrono::milliseconds deadline);

/// Memory for a message of `bytes`, from the receiver; nothing where it is to be dropped. Throws what
/// `inspect` and `place` throw; kInvalidArgument where it gives another size; kResourceExhausted for
/// an exception that is no Error.
std::optional<std::span<std::byte>> place_message(const PostedRecv& recv, std::size_t bytes,
                                                  const Envelope& envelope);

/// Moves a message within the process and ends both works; errors of `place_message`.
void deliver(const PostedSend& send, const PostedRecv& recv);

/// Empties `posted` into `works`, which are to be failed.
void take_works(PostedMessages& posted, std::vector<PendingWorkPtr>& works);

}  // namespace trireme::transport

namespace trireme::transport::internal {

/// What the matchers of two ranks tell each other.
struct Letter {
  enum class Kind : std::uint8_t {
    kMessage = 1,   ///< A small one, whole.
    kAnnouncement,  ///< A large one: `bytes`, and the number by which it is granted.
    kGrant,         ///< A recv has taken the announcement of that number, and awaits the payload.
    kAllowance,     ///< So many letters have been taken: as many more may come.
  };
  Kind kind = Kind::kMessage;
  Tag domain = 0;  ///< Its first tag.
  MessageLabel label{};
  std::uint64_t bytes = 0;  ///< Of the message.
  std::uint64_t number = 0;
  std::span<const std::byte> payload{};  ///< Of a message.
};

/// Where a matcher's letters and payloads go. Those to one rank arrive in order, but that messages
/// and announcements of different tags may overtake each other.
class MatcherLink {
 public:
  virtual ~MatcherLink() = default;

  virtual void write_letter(int peer, const Letter& letter) = 0;  ///< Copies its payload.
  virtual void send_payload(int peer, Tag tag, PostedSend send) = 0;
  virtual void recv_payload(int peer, Tag tag, PostedRecv recv) = 0;

  /// Whether a rank has said goodbye, and all its letters are here.
  virtual bool has_gone(int peer) const = 0;
};

// clang-format off
/// `Messages` of one endpoint: which recv takes which message.
///
///     sender                                   receiver
///     send, up to 8 KiB   -- message -->       the oldest recv of (source, tag), or kept
///     send, larger        -- announcement -->  likewise
///                         <-- grant --         a recv has taken it
///     work ends           == payload ==>       work ends
///                         <-- allowance --     after half of the letters that may wait
///
/// Senders keep what is beyond the letters that may wait.
///
/// Threads  confined to the endpoint's loop.
// clang-format on
class Matcher {
 public:
  /// link, domains   outlive it.
  Matcher(int rank, MatcherLink& link, const DomainBoard& domains)
      : rank_(rank), link_(link), domains_(domains) {}

  // Throw kPeerLost where the peer has left. Returned errors end the domain.
  void post_send(const MessageToSend& message, PendingWorkPtr work);
  [[nodiscard]] std::optional<Error> post_recv(const MessageToReceive& message, RecvWorkPtr work);

  /// Returns what ends the domain; kCorruptData is thrown for a letter that makes no sense.
  [[nodiscard]] std::optional<Error> arrive(int peer, const Letter& letter);

  bool cancel(const RecvWork& work);
  std::vector<WaitingMessage> waiting(Tag domain) const;

  /// The domain ends on this rank: what is left of it fails it on the others.
  [[nodiscard]] std::optional<Error> close(Tag domain);

  /// Throws kPeerLost where something waits for a rank that has left.
  void check_left(int peer) const;

  /// Whether a work is under way, but for payloads.
  bool has_work() const;

  /// A domain has failed, or the world: `works` gets the works, to be failed.
  void abandon(Tag domain, std::vector<PendingWorkPtr>& works);
  void abandon(std::vector<PendingWorkPtr>& works);

 private:
  struct Recv {
    MessageToReceive message;
    RecvWorkPtr work;
  };
  /// A message, or the announcement of one.
  struct Arrival {
    WaitingMessage message;
    std::optional<std::uint64_t> number;  ///< Of an announcement.
    std::span<const std::byte> payload;   ///< Of the letter, or of `kept`.
    std::vector<std::byte> kept;          ///< Where no recv has taken it at once.
  };
  struct Send {
    MessageLabel label;
    PostedSend posted;
  };
  /// Towards one rank.
  struct Outbox {
    std::size_t num_allowed = Messages::kMaxWaiting;  ///< Letters.
    std::deque<Send> kept;                            ///< Until they are allowed.
    std::map<std::uint64_t, PostedSend> announced;    ///< Until they are granted.
    std::uint64_t next_number = 0;
  };
  /// From one rank.
  struct Inbox {
    std::size_t num_waiting = 0;  ///< Arrivals.
    std::size_t num_taken = 0;    ///< Letters since the last allowance.
  };
  struct Box {
    std::deque<Recv> recvs;  ///< Oldest first, as are arrivals.
    std::deque<Arrival> arrivals;
    std::map<int, Outbox> to;
    std::map<int, Inbox> from;
  };

  void write(Tag domain, int peer, Outbox& outbox);
  std::optional<Error> take_message(int peer, const Letter& letter);
  void take_grant(int peer, const Letter& letter);
  void take_allowance(int peer, const Letter& letter);
  std::optional<Error> match(Tag domain, const Recv& recv, const Arrival& arrival);
  void count_taken(Tag domain, int peer);
  void await_payload(Tag domain, const Recv& recv, const Arrival& arrival);
  bool is_waited_for(int peer, Tag domain, const Box& box) const;
  bool are_all_gone(Tag domain) const;
  void check_present(const MessageToReceive& message) const;
  static bool fits(const MessageToReceive& recv, const WaitingMessage& message);
  static void take_works(Box& box, std::vector<PendingWorkPtr>& works);

  const int rank_;
  MatcherLink& link_;
  const DomainBoard& domains_;
  std::map<Tag, Box> boxes_;  ///< By domain, from its first message.
  std::set<Tag> closed_;      ///< Domains, for what comes too late.
};

}  // namespace trireme::transport::internal
