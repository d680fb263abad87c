#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "trireme/base/environment.h"
#include "trireme/base/sha256.h"

namespace trireme::transport {

/// The secret that the processes of a job share; who has it may join. Immutable.
///
/// It never crosses the wire: a connection proves that it has it (admission.h).
class Token {
 public:
  /// secret   any bytes.
  explicit Token(std::string secret) : secret_(std::move(secret)) {}

  /// One that follows from what others know or can try: it keeps jobs apart that meet by accident.
  static Token guessable(std::string text) {
    Token token(std::move(text));
    token.is_guessable_ = true;
    return token;
  }

  bool is_guessable() const { return is_guessable_; }

  /// One that is known to all.
  static Token for_tests() { return Token("no token"); }

  /// HMAC-SHA256 of `message` under the secret.
  Sha256Digest sign(std::span<const std::byte> message) const;

 private:
  std::string secret_;
  bool is_guessable_ = false;
};

/// Throws kInvalidArgument, with the line that sets a token, where other hosts could reach a listener
/// on `host` and guess the token. host: in numbers or a name; only a loopback is this host's alone.
void check_may_listen(const Token& token, const std::string& host);

/// 32 bytes that nobody can guess, as 64 hexadecimal digits: the token of a new job.
///
/// Errors   kIo where the system gives no random bytes.
std::string make_secret();

/// Fills `bytes` with what nobody can guess. Errors as above.
void fill_randomly(std::span<std::byte> bytes);

/// The secret in a file, without white space at its end.
///
/// Errors   kInvalidArgument, saying what to do, unless it is a regular file of this user that
///          nobody else may read or write (mode 0600 or less) and holds 16 to 4096 bytes; kIo.
std::string read_token_file(const std::string& path);

/// The token of the job that this process belongs to: of TRIREME_TOKEN or the file of
/// TRIREME_TOKEN_FILE; else derived from what all ranks of the job know and others may guess: that
/// keeps jobs apart that meet by accident, of which rank 0 warns `logger`, and nothing more.
///
/// Errors   those of `read_token_file`.
Token token_of_job(const RankEnvironment& environment, const Logger& logger);

/// As above for who is no rank of a launcher's job and knows only the port of its store: that of a
/// job without an id, where no variable is set.
Token token_of_store(const Environment& environment, int port, const Logger& logger);

}  // namespace trireme::transport
