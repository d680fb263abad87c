#include "trireme/remote/request.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <string_view>
#include <utility>

#include "trireme/base/sha256.h"
#include "trireme/error.h"

namespace trireme::remote {
namespace {

constexpr std::size_t kMostErrorBytes = 1 << 16;
constexpr long kMostRedirects = 10;
constexpr long kSlowestBytes = 1024;  // a second; slower counts as nothing

/// Once a process. What it holds stays until the end.
bool is_curl_there() {
  static const bool kIsThere = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return kIsThere;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

bool may_pass(CURLcode code) {
  constexpr std::array kPassing = {CURLE_COULDNT_RESOLVE_PROXY,
                                   CURLE_COULDNT_RESOLVE_HOST,
                                   CURLE_COULDNT_CONNECT,
                                   CURLE_PARTIAL_FILE,
                                   CURLE_OPERATION_TIMEDOUT,
                                   CURLE_SSL_CONNECT_ERROR,
                                   CURLE_GOT_NOTHING,
                                   CURLE_SEND_ERROR,
                                   CURLE_RECV_ERROR,
                                   CURLE_HTTP2,
                                   CURLE_HTTP2_STREAM,
                                   CURLE_AGAIN,
                                   CURLE_WEIRD_SERVER_REPLY,
                                   CURLE_HTTP3};
  return std::ranges::find(kPassing, code) != kPassing.end();
}

bool may_pass(int status) {
  constexpr std::array kPassing = {408, 425, 429, 500, 502, 503, 504};
  return std::ranges::find(kPassing, status) != kPassing.end();
}

}  // namespace

std::string HttpResponse::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

class Connection::Easy {
 public:
  Easy(std::chrono::milliseconds stall, std::filesystem::path authorities)
      : stall_(stall),
        authorities_(std::move(authorities)),
        handle_(is_curl_there() ? curl_easy_init() : nullptr, curl_easy_cleanup) {
    if (!handle_) throw Error(ErrorKind::kUnavailable, "libcurl does not start");
  }

  HttpResponse send(const HttpRequest& request, const Receiver& receiver,
                    const std::stop_token& stop) {
    transfer_ = {.receiver = &receiver, .stop = stop};
    curl_easy_reset(handle_.get());  // keeps the connection
    const List headers = headers_of(request);
    set_up(request, headers);
    const CURLcode code = curl_easy_perform(handle_.get());
    if (transfer_.failure) std::rethrow_exception(transfer_.failure);
    if (stop.stop_requested()) throw Error(ErrorKind::kCancelled, "a fetch was cancelled");
    return finish(code);
  }

 private:
  using List = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

  /// What the callbacks share.
  struct Transfer {
    const Receiver* receiver = nullptr;
    std::stop_token stop;
    HttpResponse response;
    bool has_begun = false;
    std::exception_ptr failure;
  };

  static List headers_of(const HttpRequest& request) {
    List list(nullptr, curl_slist_free_all);
    const auto add = [&](const std::string& line) {
      curl_slist* longer = curl_slist_append(list.get(), line.c_str());
      if (longer == nullptr) throw Error(ErrorKind::kResourceExhausted, "no memory for a request");
      if (!list) list.reset(longer);  // else it is the old beginning
    };
    for (const std::string& line : request.headers) add(line);
    if (!request.location.signer) return list;
    // S3 wants the hash of the body, there is none, as a header, which libcurl adds from 8.0 on.
    add("x-amz-content-sha256: " + sha256(std::string_view()));
    const std::string& token = request.location.signer->keys.session_token;
    if (!token.empty()) add("X-Amz-Security-Token: " + token);
    return list;
  }

  template <typename Value>
  void set(CURLoption option, Value value) {
    curl_easy_setopt(handle_.get(), option, value);
  }

  void set_up(const HttpRequest& request, const List& headers) {
    const ObjectLocation& location = request.location;
    set(CURLOPT_URL, location.url.c_str());
    set(CURLOPT_PATH_AS_IS, 1L);  // a key may have parts `..`
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_USERAGENT, "trireme");
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_NOSIGNAL, 1L);  // threads ask at once
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(stall_.count()));
    set(CURLOPT_LOW_SPEED_LIMIT, kSlowestBytes);
    set(CURLOPT_LOW_SPEED_TIME,
        static_cast<long>(std::max<std::int64_t>(1, stall_.count() / 1000)));
    set(CURLOPT_BUFFERSIZE, 256L << 10);
    if (!request.wants_body) set(CURLOPT_NOBODY, 1L);
    if (!authorities_.empty()) set(CURLOPT_CAINFO, authorities_.c_str());
    if (!location.is_store) follow_redirects(location);
    if (location.signer) sign(*location.signer);
    set(CURLOPT_HEADERFUNCTION, take_header);
    set(CURLOPT_HEADERDATA, &transfer_);
    set(CURLOPT_WRITEFUNCTION, take_body);
    set(CURLOPT_WRITEDATA, this);
    set(CURLOPT_NOPROGRESS, 0L);
    set(CURLOPT_XFERINFOFUNCTION, look_for_stop);
    set(CURLOPT_XFERINFODATA, &transfer_);
  }

  /// Never from https to http.
  void follow_redirects(const ObjectLocation& location) {
    set(CURLOPT_FOLLOWLOCATION, 1L);
    set(CURLOPT_MAXREDIRS, kMostRedirects);
    set(CURLOPT_REDIR_PROTOCOLS_STR, location.url.starts_with("https:") ? "https" : "http,https");
  }

  void sign(const Signer& signer) {
    set(CURLOPT_AWS_SIGV4, ("aws:amz:" + signer.region + ":s3").c_str());
    set(CURLOPT_USERNAME, signer.keys.id.c_str());
    set(CURLOPT_PASSWORD, signer.keys.secret.c_str());
  }

  HttpResponse finish(CURLcode code) {
    HttpResponse& response = transfer_.response;
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL) {
      throw Error(ErrorKind::kInvalidArgument, "the URL is none that can be asked for");
    }
    if (code != CURLE_OK) response.problem = curl_easy_strerror(code);
    curl_off_t wait = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &wait);
    if (wait > 0) response.retry_after = std::chrono::seconds(wait);
    const bool is_refused = status >= 300;
    response.may_pass = is_refused ? may_pass(response.status) : code != CURLE_OK && may_pass(code);
    return std::move(response);
  }

  static std::size_t take_header(char* data, std::size_t one, std::size_t bytes, void* to) {
    auto& transfer = *static_cast<Transfer*>(to);
    const std::string_view line = trimmed({data, one * bytes});
    if (line.starts_with("HTTP/")) transfer.response.headers.clear();  // of the last answer alone
    const std::size_t colon = line.find(':');
    if (line.starts_with("HTTP/") || colon == std::string_view::npos) return one * bytes;
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    std::string& value = transfer.response.headers[name];
    value += (value.empty() ? "" : ",") + std::string(trimmed(line.substr(colon + 1)));
    return one * bytes;
  }

  /// Nothing may be thrown through libcurl: another number than that of the bytes ends the transfer.
  static std::size_t take_body(char* data, std::size_t one, std::size_t bytes, void* to) {
    auto& easy = *static_cast<Easy*>(to);
    try {
      easy.take({reinterpret_cast<const std::byte*>(data), one * bytes});
      return one * bytes;
    } catch (...) {
      easy.transfer_.failure = std::current_exception();
      return one * bytes + 1;
    }
  }

  void take(std::span<const std::byte> bytes) {
    HttpResponse& response = transfer_.response;
    long status = 0;
    curl_easy_getinfo(handle_.get(), CURLINFO_RESPONSE_CODE, &status);
    response.status = static_cast<int>(status);
    if (!response.is_success()) {
      const std::size_t left = kMostErrorBytes - response.error_text.size();
      response.error_text.append(reinterpret_cast<const char*>(bytes.data()),
                                 std::min(left, bytes.size()));
      return;
    }
    if (!std::exchange(transfer_.has_begun, true)) transfer_.receiver->begin(response);
    transfer_.receiver->take(bytes);
  }

  static int look_for_stop(void* to, curl_off_t /*down*/, curl_off_t /*now*/, curl_off_t /*up*/,
                           curl_off_t /*now*/) {
    return static_cast<Transfer*>(to)->stop.stop_requested() ? 1 : 0;
  }

  std::chrono::milliseconds stall_;
  std::filesystem::path authorities_;
  std::unique_ptr<CURL, void (*)(CURL*)> handle_;
  Transfer transfer_;
};

Connection::Connection(std::chrono::milliseconds stall, std::filesystem::path authorities)
    : easy_(std::make_unique<Easy>(stall, std::move(authorities))) {}
Connection::~Connection() = default;
Connection::Connection(Connection&&) noexcept = default;
Connection& Connection::operator=(Connection&&) noexcept = default;

HttpResponse Connection::send(const HttpRequest& request, const Receiver& receiver,
                              const std::stop_token& stop) {
  return easy_->send(request, receiver, stop);
}

}  // namespace trireme::remote
