#include "trireme/wire/bootstrap/admission.h"

#include <sys/resource.h>

#include <algorithm>
#include <vector>

#include "trireme/error.h"

namespace trireme::transport {
namespace {

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kNonceBytes = 32;
constexpr std::string_view kChallengeMagic = "TRIREME?";
constexpr std::string_view kProofMagic = "TRIREME!";
constexpr std::string_view kYes = "TRIREME+";
constexpr std::string_view kNo = "TRIREME-";

using Bytes = std::span<const std::byte>;

void put(std::span<std::byte> target, Bytes bytes) {
  std::copy(bytes.begin(), bytes.end(), target.begin());
}

void put(std::span<std::byte> target, std::string_view text) {
  put(target, std::as_bytes(std::span(text)));
}

bool begins_with(Bytes bytes, std::string_view text) {
  const Bytes expected = std::as_bytes(std::span(text));
  return std::equal(expected.begin(), expected.end(), bytes.begin());
}

/// Signed by the side that `role` names.
Sha256Digest sign(const Token& token, const std::string& role, Bytes listener_nonce,
                  Bytes connector_nonce) {
  std::vector<std::byte> text(role.size() + 1 + 2 * kNonceBytes);  // a zero ends the role
  put(text, role);
  put(std::span(text).subspan(role.size() + 1), listener_nonce);
  put(std::span(text).subspan(role.size() + 1 + kNonceBytes), connector_nonce);
  return token.sign(text);
}

template <std::size_t N>
std::span<const std::byte, kNonceBytes> nonce_of(const std::array<std::byte, N>& message) {
  return std::span(message).template subspan<kMagicBytes, kNonceBytes>();
}

/// Whether all has come before the connection's end.
bool read_all(const Descriptor& socket, std::span<std::byte> rest, const WaitReadable& wait) {
  while (!rest.empty()) {
    wait(socket);
    const auto count = read_some(socket, rest);
    if (!count) return false;
    rest = rest.subspan(*count);
  }
  return true;
}

[[noreturn]] void refuse_listener(const std::string& listener, const std::string& why) {
  throw Error(ErrorKind::kInvalidArgument, listener + " " + why);
}

constexpr const char* kOtherToken =
    "belongs to another job or has another token; give all ranks the same TRIREME_TOKEN or "
    "TRIREME_TOKEN_FILE, and each job a port of its own";

}  // namespace

Admission::Admission(Descriptor socket, const Token& token, std::string door)
    : socket_(std::move(socket)), token_(token), door_(std::move(door)) {
  put(challenge_, kChallengeMagic);
  fill_randomly(std::span(challenge_).subspan(kMagicBytes));
  // The first bytes of a connection: there is room. Reading tells where it has ended.
  write_some(socket_, challenge_);
}

Admission::State Admission::hear() {
  const auto count = read_some(socket_, std::span(proof_).subspan(num_bytes_));
  if (!count) return State::kClosed;
  num_bytes_ += *count;
  const std::size_t num_magic = std::min(num_bytes_, kMagicBytes);
  if (!begins_with(proof_, kProofMagic.substr(0, num_magic))) return State::kGarbage;
  return num_bytes_ < proof_.size() ? State::kHearing : judge();
}

Admission::State Admission::judge() {
  const auto given = std::span(proof_).last<kVerdictBytes - kMagicBytes>();
  const Sha256Digest expected =
      sign(token_, "connects " + door_, nonce_of(challenge_), nonce_of(proof_));
  const bool is_ours = is_same_digest(given, expected);
  std::array<std::byte, kVerdictBytes> verdict{};  // no proof for who has none
  put(verdict, is_ours ? kYes : kNo);
  if (is_ours) {
    put(std::span(verdict).subspan(kMagicBytes),
        sign(token_, "listens " + door_, nonce_of(challenge_), nonce_of(proof_)));
  }
  const bool is_told = write_some(socket_, verdict) == verdict.size();
  if (!is_ours) return State::kRefused;
  return is_told ? State::kAdmitted : State::kClosed;
}

bool enter(const Descriptor& socket, const Token& token, const std::string& door,
           const std::string& listener, const WaitReadable& wait) {
  std::array<std::byte, kChallengeBytes> challenge{};
  if (!read_all(socket, challenge, wait)) return false;
  if (!begins_with(challenge, kChallengeMagic)) {
    refuse_listener(listener, "is served by another program; check the address");
  }
  std::array<std::byte, kProofBytes> proof{};
  put(proof, kProofMagic);
  fill_randomly(std::span(proof).subspan(kMagicBytes, kNonceBytes));
  put(std::span(proof).subspan(kMagicBytes + kNonceBytes),
      sign(token, "connects " + door, nonce_of(challenge), nonce_of(proof)));
  if (write_some(socket, proof) != proof.size()) return false;
  std::array<std::byte, kVerdictBytes> verdict{};
  if (!read_all(socket, verdict, wait)) return false;
  const Sha256Digest expected =
      sign(token, "listens " + door, nonce_of(challenge), nonce_of(proof));
  if (!begins_with(verdict, kYes) || !is_same_digest(nonce_of(verdict), expected)) {
    refuse_listener(listener, kOtherToken);
  }
  return true;
}

std::optional<Descriptor> enter_with_retries(const std::function<Descriptor()>& connect,
                                             const Token& token, const std::string& door,
                                             const std::string& listener,
                                             const WaitReadable& wait) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i) {
    Descriptor socket = connect();
    if (enter(socket, token, door, listener, wait)) return socket;
  }
  return std::nullopt;
}

WaitReadable wait_until(Deadline deadline, const std::string& listener,
                        std::chrono::milliseconds longest) {
  return [deadline, listener, longest](const Descriptor& socket) {
    if (wait_readable(socket, std::min(deadline, std::chrono::steady_clock::now() + longest))) {
      return;
    }
    throw Error(ErrorKind::kTimeout, listener + " does not answer; does another program use it?");
  };
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kReportEvery{10'000};
constexpr milliseconds kFirstReportAfter{1'000};  // so that a burst is one line
constexpr milliseconds kRestAtLeast{50};

/// A quarter of the descriptors that the process may have.
std::size_t limit_of_strangers() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  return static_cast<std::size_t>(std::clamp<rlim_t>(limit.rlim_cur / 4, 16, 4096));
}

const char* reason(Admission::State state) {
  switch (state) {
    case Admission::State::kClosed:
      return "went away";
    case Admission::State::kGarbage:
      return "did not speak our protocol";
    default:
      return "had another token";
  }
}

}  // namespace

Gate::Gate(Descriptor listener, Poller& poller, GateOptions options)
    : listener_(std::move(listener)),
      poller_(poller),
      options_(std::move(options)),
      max_strangers_(options_.max_strangers > 0 ? static_cast<std::size_t>(options_.max_strangers)
                                                : limit_of_strangers()),
      next_report_(Clock::now()) {
  poller_.add(listener_, kFirstId);
}

Gate::~Gate() {
  next_report_ = {};
  report();
}

std::optional<Descriptor> Gate::serve(const Poller::Event& event) {
  if (event.id == kFirstId) {
    accept_all();
    return std::nullopt;
  }
  const auto found = strangers_.find(event.id);
  if (found == strangers_.end()) return std::nullopt;
  Admission& admission = found->second.admission;
  Admission::State state = Admission::State::kClosed;
  try {
    state = admission.hear();
  } catch (const Error&) {  // its connection is broken
    state = Admission::State::kClosed;
  }
  if (state == Admission::State::kHearing) return std::nullopt;
  std::optional<Descriptor> admitted;
  if (state == Admission::State::kAdmitted) {
    poller_.remove(admission.socket());
    admitted = admission.take_socket();
  } else {
    refuse(reason(state));
  }
  strangers_.erase(found);
  return admitted;
}

void Gate::accept_all() {
  try {
    while (strangers_.size() < max_strangers_) {
      std::optional<Descriptor> socket = accept_from(listener_);
      if (!socket) return;
      accept(std::move(*socket));
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch)
    // Out of descriptors: those who wait get in later.
  }
  rest(true);
}

void Gate::accept(Descriptor socket) {
  if (options_.may_try && !options_.may_try(socket)) return refuse("are of another user");
  const std::uint64_t id = ++last_id_;
  const auto [place, is_new] = strangers_.try_emplace(
      id, Stranger{Admission(std::move(socket), options_.token, options_.door), Clock::now()});
  poller_.add(place->second.admission.socket(), id);
}

void Gate::rest(bool is_resting) {
  if (is_resting == resting_since_.has_value()) return;
  poller_.change(listener_, kFirstId, {.in_reading = !is_resting});
  resting_since_ = is_resting ? std::optional(Clock::now()) : std::nullopt;
}

milliseconds Gate::patience() const {
  return resting_since_ ? options_.patience_when_full : options_.patience;
}

void Gate::expire() {
  const Deadline now = Clock::now();
  while (!strangers_.empty() && now >= strangers_.begin()->second.since + patience()) {
    refuse("said too little in time");
    strangers_.erase(strangers_.begin());
  }
  if (resting_since_ && strangers_.size() < max_strangers_ &&
      now >= *resting_since_ + kRestAtLeast) {
    rest(false);
  }
  report();
}

Deadline Gate::next_deadline() const {
  Deadline next = Deadline::max();
  if (!strangers_.empty()) next = strangers_.begin()->second.since + patience();
  if (resting_since_ && strangers_.size() < max_strangers_) {
    next = std::min(next, *resting_since_ + kRestAtLeast);
  }
  if (!num_refused_.empty()) next = std::min(next, next_report_);
  return next;
}

void Gate::refuse(const std::string& why) {
  if (num_refused_.empty()) {
    next_report_ = std::max(next_report_, Clock::now() + kFirstReportAfter);
  }
  ++num_refused_[why];
}

void Gate::report() {
  if (num_refused_.empty() || Clock::now() < next_report_) return;
  std::string counts;
  for (const auto& [why, count] : num_refused_) {
    counts += (counts.empty() ? "" : ", ") + std::to_string(count) + " " + why;
  }
  options_.logger.warning("refused connections to the " + options_.door + ": " + counts);
  num_refused_.clear();
  next_report_ = Clock::now() + kReportEvery;
}

}  // namespace trireme::transport
