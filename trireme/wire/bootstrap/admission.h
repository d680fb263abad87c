#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trireme/base/log.h"
#include "trireme/wire/bootstrap/token.h"
#include "trireme/wire/system/poller.h"
#include "trireme/wire/system/socket.h"

namespace trireme::transport {

/// How a connection proves that both sides belong to a job (C connects, L listens):
///
///     L -> C   40 bytes  magic, nonce of L
///     C -> L   72 bytes  magic, nonce of C, HMAC(token, "connects <door>", both nonces)
///     L -> C   40 bytes  verdict, HMAC(token, "listens <door>", both nonces)
///
/// Nonces are new for each connection, so that what was recorded is of no use later; each side
/// signs another text, so that its own proof cannot be given back to it. What follows on the
/// connection is neither encrypted nor signed.
///
/// door     what is behind the listener: `store`, `rank`, `memory`.
inline constexpr std::size_t kChallengeBytes = 40;
inline constexpr std::size_t kProofBytes = 72;
inline constexpr std::size_t kVerdictBytes = 40;

/// The listening side of one connection; never blocks. Caller-synchronised.
class Admission {
 public:
  enum class State : std::uint8_t {
    kHearing,
    kAdmitted,
    kClosed,   ///< The other side ended it.
    kGarbage,  ///< No proof at all.
    kRefused,  ///< The proof of another token.
  };

  /// Sends the challenge.
  Admission(Descriptor socket, const Token& token, std::string door);

  /// Reads what has come of the proof, and answers it once it is complete.
  State hear();

  const Descriptor& socket() const { return socket_; }
  Descriptor take_socket() { return std::move(socket_); }

 private:
  State judge();

  Descriptor socket_;
  const Token& token_;
  const std::string door_;
  std::array<std::byte, kChallengeBytes> challenge_{};
  std::array<std::byte, kProofBytes> proof_{};
  std::size_t num_bytes_ = 0;
};

/// Blocks until the socket is readable; throws where that has taken too long.
using WaitReadable = std::function<void(const Descriptor& socket)>;

/// The connecting side: proves itself and checks the other side's proof. Blocks in `wait`.
///
/// Returns  false where the other side closed the connection before it had judged: it has ended, or
///          was too busy. Another try may help.
/// Errors   kInvalidArgument, naming `listener`, where it has another token, or the other side is
///          none of ours; those of `wait`.
bool enter(const Descriptor& socket, const Token& token, const std::string& door,
           const std::string& listener, const WaitReadable& wait);

/// Connects and enters; where the other side closes the connection before it has judged, because it
/// ends or too many strangers have come to it, again, three times in all. Nothing where it did so
/// each time.
///
/// Errors   those of `connect` and `enter`.
std::optional<Descriptor> enter_with_retries(const std::function<Descriptor()>& connect,
                                             const Token& token, const std::string& door,
                                             const std::string& listener, const WaitReadable& wait);

/// For `enter`: kTimeout where it takes longer than until `deadline`, or `longest` for one answer:
/// who listens there may be another program, that waits for us.
WaitReadable wait_until(Deadline deadline, const std::string& listener,
                        std::chrono::milliseconds longest = std::chrono::seconds(15));

struct GateOptions {
  Token token;
  std::string door;  ///< As in Admission.
  Logger logger{LogLevel::kWarning};
  std::chrono::milliseconds patience{5'000};  ///< With a connection that proves nothing.
  std::chrono::milliseconds patience_when_full{1'000};
  int max_strangers = 0;  ///< Connections that have proved nothing; 0: by the system's limits.

  /// Who may not even try; may be null.
  std::function<bool(const Descriptor&)> may_try;
};

/// A listener and the connections that have not yet proved that they belong to the job: those that
/// do are handed on, the others are closed and counted.
///
/// Where too many wait, the listener rests until the oldest are closed: so strangers delay a rank
/// by little more than `patience_when_full` for each `max_strangers` of them.
///
/// Threads  caller-synchronised: that of the poller.
class Gate {
 public:
  /// Uses the upper half of the poller's ids.
  Gate(Descriptor listener, Poller& poller, GateOptions options);

  /// Logs what it has counted and not said.
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  const Descriptor& listener() const { return listener_; }

  static bool is_id(std::uint64_t id) { return id >= kFirstId; }

  /// Serves an event of its own ids: the connection where it has been admitted. It is in no poller.
  std::optional<Descriptor> serve(const Poller::Event& event);

  /// Closes those that have waited too long. Call it at `next_deadline` at the latest.
  void expire();

  /// When `expire` has something to do.
  Deadline next_deadline() const;

 private:
  static constexpr std::uint64_t kFirstId = std::uint64_t{1} << 63;

  struct Stranger {
    Admission admission;
    Deadline since;
  };

  void accept_all();
  void accept(Descriptor socket);
  void rest(bool is_resting);
  void refuse(const std::string& why);
  void report();
  std::chrono::milliseconds patience() const;

  Descriptor listener_;
  Poller& poller_;
  const GateOptions options_;
  const std::size_t max_strangers_;
  std::uint64_t last_id_ = kFirstId;
  std::map<std::uint64_t, Stranger> strangers_;  ///< The oldest first.
  std::optional<Deadline> resting_since_;
  std::map<std::string, int> num_refused_;  ///< By the reason, since the last report.
  Deadline next_report_;
};

}  // namespace trireme::transport
