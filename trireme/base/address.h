#pragma once

#include <string>

namespace trireme {

/// A TCP address; the host as a name or in numbers.
struct Address {
  std::string host = "127.0.0.1";
  int port = 0;  ///< 0: to listen on any free one.
};

inline constexpr int kMaxPort = 65'535;

/// `127.0.0.1:4000`, `[::1]:4000`.
std::string to_text(const Address& address);

/// Inverse of `to_text`, for addresses that can be connected to: with a port from 1 on.
///
/// Errors   kInvalidArgument, naming the text, where it is none.
Address parse_address(const std::string& text);

}  // namespace trireme
