#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/remote/location.h"

namespace trireme::remote {

/// One GET or HEAD.
struct HttpRequest {
  ObjectLocation location;
  bool wants_body = true;            ///< Else HEAD.
  std::vector<std::string> headers;  ///< `If-Match: ".."`
};

/// By name in small letters; of several of one name all values, with commas between.
using Headers = std::map<std::string, std::string, std::less<>>;

/// How a request went.
struct HttpResponse {
  int status = 0;  ///< 0: none has come.
  Headers headers;
  std::string error_text;  ///< The body of a status that is no success; its beginning.
  std::string problem;     ///< Why it ended before its end, in words; empty: it is whole.
  bool may_pass = false;   ///< Whether to ask again may help.
  std::optional<std::chrono::seconds> retry_after;  ///< What the server asks to wait.

  bool is_success() const { return status >= 200 && status < 300; }
  std::string header(std::string_view name) const;  ///< Empty where it is not there.
};

/// Gets the body of a success, in order, in pieces that are lent for the call. Errors of either end the request.
struct Receiver {
  std::function<void(const HttpResponse& head)> begin = [](const HttpResponse&) {
  };  ///< Before the first.
  std::function<void(std::span<const std::byte>)> take = [](std::span<const std::byte>) {};
};

/// A connection that is kept from request to request. Caller-synchronised.
class Connection {
 public:
  /// stall         after so long without a byte a try has failed.
  /// authorities   file of certificates; empty: the system's.
  /// Errors        kUnavailable where libcurl does not start.
  Connection(std::chrono::milliseconds stall, std::filesystem::path authorities);
  ~Connection();
  Connection(Connection&&) noexcept;
  Connection& operator=(Connection&&) noexcept;

  /// Tries once. Blocking; ends within a second once a stop is asked for.
  ///
  /// Errors   those of the receiver; kInvalidArgument for a URL that is none; kCancelled. What goes wrong on the way, and an
  ///          answer that is no success, is in the response.
  HttpResponse send(const HttpRequest& request, const Receiver& receiver,
                    const std::stop_token& stop);

 private:
  class Easy;  // libcurl's handle (request.cc)
  std::unique_ptr<Easy> easy_;
};

}  // namespace trireme::remote
