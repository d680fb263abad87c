#include "trireme/wire/bootstrap/token.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "trireme/base/descriptor.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"
#include "trireme/wire/system/interfaces.h"

namespace trireme::transport {
namespace {

constexpr std::size_t kMinSecret = 16;
constexpr std::size_t kMaxSecret = 4096;

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kInvalidArgument, "token file '" + path + "' " + why);
}

void check_owner(const std::string& path, const Descriptor& file) {
  struct stat facts{};
  if (::fstat(file.number(), &facts) != 0) throw_system_error("look at", path, errno);
  if (!S_ISREG(facts.st_mode)) refuse_file(path, "is no regular file");
  if (facts.st_uid != ::geteuid()) {
    refuse_file(path, "belongs to user " + std::to_string(facts.st_uid) +
                          " and not to the one who runs this; copy it");
  }
  if ((facts.st_mode & 0177) != 0) {
    refuse_file(path, "may be used by others; say: chmod 600 " + path);
  }
}

}  // namespace

Sha256Digest Token::sign(std::span<const std::byte> message) const {
  return hmac_sha256(std::as_bytes(std::span(secret_)), message);
}

void fill_randomly(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::getrandom(bytes.data(), bytes.size(), 0);
    if (count < 0 && errno != EINTR) throw_system_error("get random bytes", errno);
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::string make_secret() {
  std::array<std::byte, 32> bytes{};
  fill_randomly(bytes);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

std::string read_token_file(const std::string& path) {
  // Not blocking: a named pipe is refused, not waited for.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) throw_system_error("open token file", path, errno);
  check_owner(path, file);
  std::array<char, kMaxSecret + 1> buffer{};
  const ssize_t count = ::read(file.number(), buffer.data(), buffer.size());
  if (count < 0) throw_system_error("read token file", path, errno);
  std::string secret(buffer.data(), static_cast<std::size_t>(count));
  if (secret.size() > kMaxSecret) refuse_file(path, "has more than 4096 bytes");
  while (!secret.empty() && std::string_view(" \t\r\n").find(secret.back()) != std::string::npos) {
    secret.pop_back();
  }
  if (secret.size() < kMinSecret) {
    refuse_file(path, "has fewer than 16 characters; make one: openssl rand -hex 32");
  }
  return secret;
}

Token token_of_job(const RankEnvironment& environment, const Logger& logger) {
  if (!environment.token.empty()) return Token(environment.token);
  if (!environment.token_file.empty()) return Token(read_token_file(environment.token_file));
  if (environment.rank == 0) {
    logger.warning(
        "no job token: jobs are kept apart only by what others can guess; set TRIREME_TOKEN or "
        "TRIREME_TOKEN_FILE on all ranks to keep strangers out");
  }
  const std::string generation = environment.generation.empty() ? "0" : environment.generation;
  // Without the store's host: launchers spell it differently for different ranks.
  return Token::guessable("world\n" + environment.job_id + "\n" + generation + "\n" +
                          std::to_string(environment.store_port));
}

void check_may_listen(const Token& token, const std::string& host) {
  if (!token.is_guessable() || host == "localhost" || is_loopback(host)) return;
  throw Error(ErrorKind::kInvalidArgument,
              "no token is set, and other hosts reach '" + host +
                  "': whoever guesses the job's id and port could join or end it; on all ranks "
                  "set TRIREME_TOKEN to one secret (openssl rand -hex 32), or TRIREME_TOKEN_FILE");
}

Token token_of_store(const Environment& environment, int port, const Logger& logger) {
  return token_of_job(
      {.store_port = port, .token = environment.token.text, .token_file = environment.token.file},
      logger);
}

}  // namespace trireme::transport
