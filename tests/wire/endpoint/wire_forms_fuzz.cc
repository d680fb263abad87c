// Any bytes are, for each form that crosses the wire, either something that survives the round trip
// or a trireme::Error.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/store_message.h"
#include "trireme/wire/endpoint/tcp/frame.h"
#include "trireme/wire/endpoint/tcp/hello.h"
#include "trireme/wire/system/byte_form.h"

namespace {

using namespace trireme::transport;
using Bytes = std::span<const std::byte>;

template <typename Check>
void attempt(Check check) {
  try {
    if (!check()) std::abort();
  } catch (const trireme::Error&) {
    return;
  }
}

/// The first bytes, or zeros where there are too few.
template <typename Header>
Header header_of(Bytes bytes) {
  Header header{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), header.size()), header.begin());
  return header;
}

bool check_store_messages(Bytes bytes) {
  std::vector<std::byte> received(bytes.begin(), bytes.end());
  while (const auto message = take_store_message(received)) {
    std::vector<std::byte> written = to_bytes(*message);
    const auto back = take_store_message(written);
    if (!back || to_bytes(*back) != to_bytes(*message) || !written.empty()) return false;
  }
  return true;
}

bool check_error(Bytes bytes) {
  const std::vector<std::byte> written = error_to_bytes(error_from_bytes(bytes));
  return error_to_bytes(error_from_bytes(written)) == written;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  attempt([&] { return check_store_messages(bytes); });
  attempt([&] { return check_error(bytes); });
  attempt([&] {
    const auto header = header_of<internal::FrameHeader>(bytes);
    return internal::to_bytes(internal::parse_frame(header)) == header;
  });
  attempt([&] {
    const auto header = header_of<internal::HelloBytes>(bytes);
    return internal::to_bytes(internal::parse_hello(header)) == header;
  });
  return 0;
}
