#include "trireme/remote/objects.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <utility>

#include "trireme/error.h"
#include "trireme/remote/download.h"
#include "trireme/remote/listing.h"

namespace trireme::remote {
namespace {

namespace fs = std::filesystem;

/// Ends a request whose head is all that is wanted.
struct HeadIsEnough : std::exception {};

std::string quoted(const fs::path& name) { return "'" + shown(name).string() + "'"; }

/// Why an answer is none to go on with.
std::string reason_of(const HttpResponse& response) {
  if (response.status == 0) return response.problem;
  if (response.is_success()) return "the connection broke off: " + response.problem;
  const std::string code = error_code(response.error_text);
  return "HTTP status " + std::to_string(response.status) + (code.empty() ? "" : ", " + code);
}

/// What could be done about an answer of a store.
std::string advice(const HttpResponse& response, const ObjectLocation& location) {
  const std::string region = response.header("x-amz-bucket-region");
  if (location.is_store && !location.is_google && !region.empty() &&
      (!location.signer || location.signer->region != region)) {
    return "; the bucket is in another region: set AWS_REGION to " + region;
  }
  if (response.status != 401 && response.status != 403) return {};
  if (!location.is_store) return "; it asks who you are, or its link has run out";
  const std::string variables = location.is_google ? "GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY"
                                                   : "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  return location.signer ? "; the keys in " + variables + " may not read it, or are not right"
                         : "; it was asked for without keys: " + variables + " have them";
}

[[noreturn]] void refuse_answer(const fs::path& name, const ObjectLocation& location,
                                const HttpResponse& response) {
  constexpr int kIsGone = 404, kHasChanged = 412, kIsShorter = 416;
  const std::string reason = " (" + reason_of(response) + ")";
  std::string problem = " cannot be fetched" + reason;
  if (response.status == kIsGone) problem = " is not there" + reason;
  if (response.status == kHasChanged || response.status == kIsShorter) {
    problem = " has changed while it was fetched" + reason + "; start again";
  }
  throw Error(ErrorKind::kIo, quoted(name) + problem + advice(response, location));
}

std::int64_t number_in(const std::string& text) {
  std::int64_t number = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() ? number : -1;
}

/// The length of an object by the head of an answer, whole or of a part; below 0: it does not say.
std::int64_t length_in(const HttpResponse& head) {
  const std::string range = head.header("content-range");
  const bool is_part = head.status == 206;
  return number_in(is_part ? range.substr(range.find('/') + 1) : head.header("content-length"));
}

}  // namespace

/// A connection for the time of a call.
class Objects::Loan {
 public:
  explicit Loan(const Objects& objects) : objects_(objects) {
    const std::lock_guard lock(objects.mutex_);
    if (objects.idle_.empty()) return;
    connection_.emplace(std::move(objects.idle_.back()));
    objects.idle_.pop_back();
  }
  ~Loan() {
    if (!connection_) return;
    const std::lock_guard lock(objects_.mutex_);
    objects_.idle_.push_back(std::move(*connection_));
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  Connection& connection() {
    if (!connection_) {
      connection_.emplace(objects_.policy_.stall, objects_.environment_.authorities);
    }
    return *connection_;
  }

 private:
  const Objects& objects_;
  std::optional<Connection> connection_;
};

Objects::Objects(RemoteEnvironment environment, RetryPolicy policy)
    : environment_(std::move(environment)), policy_(policy) {}

void Objects::hang_up() const {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

HttpResponse Objects::ask(const std::function<HttpRequest()>& next, const Receiver& receiver,
                          Retry& retry, const std::stop_token& stop) const {
  Loan loan(*this);
  for (;;) {
    HttpResponse response = loan.connection().send(next(), receiver, stop);
    if (!response.may_pass) return response;
    retry.wait(reason_of(response), response.retry_after);
  }
}

HttpResponse Objects::ask_for_head(const fs::path& name, const ObjectLocation& location,
                                   Retry& retry, const std::stop_token& stop) const {
  HttpRequest request{.location = location, .wants_body = false};
  HttpResponse head = ask([&] { return request; }, {}, retry, stop);
  const bool is_good = head.is_success() && head.problem.empty();
  if (is_good && length_in(head) >= 0) return head;
  // Links that are signed for GET alone, and servers that know no HEAD.
  constexpr std::array kNoHead = {400, 401, 403, 405, 501};
  const bool may_have_no_head =
      !location.is_store && std::ranges::find(kNoHead, head.status) != kNoHead.end();
  if (!is_good && !may_have_no_head) refuse_answer(name, location, head);
  request.wants_body = true;
  request.headers = {"Range: bytes=0-0", "Accept-Encoding: identity"};
  const Receiver stop_at_head{.begin = [&](const HttpResponse& first) {
    head = first;
    throw HeadIsEnough();
  }};
  try {
    head = ask([&] { return request; }, stop_at_head, retry, stop);
  } catch (const HeadIsEnough&) {
    return head;
  }
  if (!head.is_success() || !head.problem.empty()) refuse_answer(name, location, head);
  return head;
}

ObjectVersion Objects::inspect(const fs::path& name, const std::stop_token& stop) const {
  const ObjectLocation location = location_of(name, environment_);
  Retry retry(policy_, quoted(name), stop);
  const HttpResponse head = ask_for_head(name, location, retry, stop);
  const std::int64_t bytes = length_in(head);
  if (bytes < 0) {
    throw Error(ErrorKind::kIo, quoted(name) +
                                    " cannot be fetched: its server does not say how long it is; "
                                    "download it by other means");
  }
  return {
      .etag = head.header("etag"), .last_modified = head.header("last-modified"), .bytes = bytes};
}

void Objects::fetch(const fs::path& name, const ObjectVersion& version, const Descriptor& file,
                    const std::stop_token& stop) const {
  if (version.bytes == 0) return;
  const ObjectLocation location = location_of(name, environment_);
  Retry retry(policy_, quoted(name), stop);
  Download download(name, location, version, file);
  const Receiver receiver{.begin = [&](const HttpResponse& head) { download.begin(head); },
                          .take =
                              [&](std::span<const std::byte> bytes) {
                                if (download.take(bytes)) retry.note_progress();
                              }};
  for (;;) {
    const HttpResponse response =
        ask([&] { return download.next_request(); }, receiver, retry, stop);
    if (!response.is_success() || !response.problem.empty()) {
      refuse_answer(name, location, response);
    }
    if (download.is_whole() && download.is_sound()) return;
    if (download.is_whole()) {
      retry.wait("what came does not match the checksum that the server says");
      download.start_again();
    } else {
      retry.wait("the answer ended before the object did");
    }
  }
}

std::vector<fs::path> Objects::list(const fs::path& folder) const {
  const auto [bucket, prefix] = bucket_key(folder);
  const std::string scheme = folder.native().substr(0, folder.native().find("://") + 3);
  ObjectLocation location = location_of(scheme + bucket + "/", environment_);
  const std::string bucket_url = location.url;
  constexpr std::size_t kMostBytes = std::size_t{1} << 26;  // of a page: it has 1000 keys
  Retry retry(policy_, "the listing of " + quoted(folder), {});
  std::vector<fs::path> names;
  std::string text, token;
  const Receiver receiver{
      .begin = [&](const HttpResponse&) { text.clear(); },
      .take =
          [&](std::span<const std::byte> bytes) {
            if (text.size() + bytes.size() > kMostBytes) {
              throw Error(ErrorKind::kCorruptData,
                          "the listing of " + quoted(folder) + " is too long to be one");
            }
            text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          }};
  do {
    // Sorted by name, as they are signed.
    location.url =
        bucket_url + "?" +
        (token.empty() ? "" : "continuation-token=" + percent_encoded(token, false) + "&") +
        "delimiter=%2F&encoding-type=url&list-type=2&prefix=" + percent_encoded(prefix, false);
    text.clear();
    const HttpResponse response =
        ask([&] { return HttpRequest{.location = location}; }, receiver, retry, {});
    if (!response.is_success() || !response.problem.empty()) {
      refuse_answer(folder, location, response);
    }
    ListingPage page = parse_listing(text, shown(folder).string());
    if (page.next == token && !token.empty()) {
      throw Error(ErrorKind::kCorruptData,
                  "the listing of " + quoted(folder) + " goes in a circle");
    }
    for (const std::string& key : page.keys) names.emplace_back(scheme + bucket + "/" + key);
    token = std::move(page.next);
    retry.note_progress();
  } while (!token.empty());
  std::ranges::sort(names, {}, &fs::path::native);
  const auto twice = std::ranges::adjacent_find(names, {}, &fs::path::native);
  if (twice != names.end()) {
    throw Error(ErrorKind::kCorruptData,
                "the listing of " + quoted(folder) + " has " + quoted(*twice) + " twice");
  }
  return names;
}

}  // namespace trireme::remote
