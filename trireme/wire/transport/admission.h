#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "trireme/wire/transport/socket.h"
#include "trireme/wire/transport/token.h"

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

}  // namespace trireme::transport
