#include "trireme/wire/endpoint/tcp/hello.h"

#include <algorithm>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::transport::internal {
namespace {

constexpr std::uint32_t kHelloMagic = 0x49'48'52'54;  // `TRHI`
constexpr std::uint16_t kHelloVersion = 2;

}  // namespace

HelloBytes to_bytes(const Hello& hello) {
  FixedWriter<std::tuple_size_v<HelloBytes>> writer;
  writer.integer(kHelloMagic)
      .integer(kHelloVersion)
      .integer(static_cast<std::uint16_t>(hello.welcome))
      .integer(hello.world_id)
      .integer(hello.rank)
      .integer(hello.world_size);
  return writer.written();
}

Hello parse_hello(const HelloBytes& bytes) {
  ByteReader reader(bytes);
  const auto magic = reader.integer<std::uint32_t>();
  const auto version = reader.integer<std::uint16_t>();
  const auto welcome = reader.integer<std::uint16_t>();
  Hello hello;
  hello.world_id = reader.integer<std::uint64_t>();
  hello.rank = reader.integer<std::int32_t>();
  hello.world_size = reader.integer<std::int32_t>();
  const auto zeros = reader.integer<std::uint64_t>();
  if (magic != kHelloMagic || version != kHelloVersion || zeros != 0 ||
      welcome > static_cast<std::uint16_t>(Welcome::kWrongRank)) {
    throw Error(ErrorKind::kCorruptData, "bytes that are no hello of this version");
  }
  hello.welcome = static_cast<Welcome>(welcome);
  return hello;
}

}  // namespace trireme::transport::internal
