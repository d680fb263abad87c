#include "trireme/base/address.h"

#include <charconv>

#include "trireme/error.h"

namespace trireme {
namespace {

bool is_v6(const std::string& host) { return host.find(':') != std::string::npos; }

/// 0 where it is none.
int port_of(std::string_view text) {
  int port = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool is_port = code == std::errc() && end == text.data() + text.size();
  return is_port && port >= 1 && port <= kMaxPort ? port : 0;
}

}  // namespace

std::string to_text(const Address& address) {
  const std::string host = is_v6(address.host) ? "[" + address.host + "]" : address.host;
  return host + ":" + std::to_string(address.port);
}

Address parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    Address address{text.substr(0, colon), port_of(std::string_view(text).substr(colon + 1))};
    std::string& host = address.host;
    const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (has_brackets) host = host.substr(1, host.size() - 2);
    const bool is_host = !host.empty() && host.find_first_of("[]") == std::string::npos;
    if (address.port != 0 && is_host && has_brackets == is_v6(host)) return address;
  }
  throw Error(ErrorKind::kInvalidArgument,
              "'" + text + "' is no address; write HOST:PORT with a port from 1 to 65535, as " +
                  "10.0.0.1:4000 or [::1]:4000");
}

}  // namespace trireme
