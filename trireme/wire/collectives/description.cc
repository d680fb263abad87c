#include "trireme/wire/collectives/description.h"

#include <array>
#include <bit>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "trireme/error.h"
#include "trireme/wire/system/byte_form.h"

namespace trireme::collectives {
namespace {

constexpr std::array<std::string_view, 9> kOperations = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
    "reduce",     "gather",         "scatter",    "all_to_all"};
constexpr std::uint32_t kMagic = 0x43'4c'52'54;  // `TRLC`
constexpr std::uint8_t kHasHash = 0x80;          // beside order and algorithm

}  // namespace

std::string_view to_text(Collective operation) {
  return kOperations.at(static_cast<std::size_t>(operation));
}

bool has_root(Collective operation) {
  return operation == Collective::kBroadcast || operation == Collective::kReduce ||
         operation == Collective::kGather || operation == Collective::kScatter;
}

bool reduces(Collective operation) {
  return operation == Collective::kAllReduce || operation == Collective::kReduce ||
         operation == Collective::kReduceScatter;
}

std::string to_text(const Description& description) {
  std::string text = "operation " + std::to_string(description.sequence) + ": " +
                     std::string(to_text(description.operation));
  if (description.operation != Collective::kBarrier) {
    text += " of " + std::to_string(description.count) + " " +
            std::string(trireme::to_text(description.dtype));
  }
  if (description.reduce != kernels::ReduceOp::kSum) {
    text += " by " + std::string(kernels::to_text(description.reduce));
  }
  if (has_root(description.operation)) {
    text += " with root " + std::to_string(description.root);
  } else if (description.operation == Collective::kAllReduce && description.root != 0) {
    text += " with " + std::to_string(description.root) + " reducers";
  } else if (description.root != 0) {
    text += " in parts of sizes no. " + std::to_string(description.root);
  }
  if (description.algorithm != Algorithm::kTwoHop) {
    text += " by " + std::string(to_text(description.algorithm));
  }
  if (description.order != Order::kCanonical) {
    text += " in " + std::string(to_text(description.order)) + " order";
  }
  text += " among " + std::to_string(description.group_size) + " ranks";
  return description.hash ? text + " with hash " + hash_text(*description.hash) : text;
}

std::string hash_text(std::uint64_t hash) {
  std::array<char, 19> text{};
  std::snprintf(text.data(), text.size(), "0x%016" PRIx64, hash);
  return text.data();
}

std::string difference_text(int rank, const Description& description, int other_rank,
                            const Description& other) {
  return "the ranks call different operations: rank " + std::to_string(rank) + " " +
         to_text(description) + ", rank " + std::to_string(other_rank) + " " + to_text(other) +
         "; all must make the same calls in the same order";
}

transport::Envelope to_bytes(const Description& description, double scale) {
  const int way =
      static_cast<int>(description.order) * 16 + static_cast<int>(description.algorithm);
  transport::FixedWriter<kDescriptionBytes> writer;
  writer.integer(kMagic)
      .integer(description.sequence)
      .integer(static_cast<std::uint8_t>(description.operation))
      .integer(static_cast<std::uint8_t>(description.dtype))
      .integer(static_cast<std::uint8_t>(description.reduce))
      .integer(static_cast<std::uint8_t>(way | (description.hash ? kHasHash : 0)))
      .integer(description.count)
      .integer(description.root)
      .integer(description.group_size)
      .integer(description.hash.value_or(0))
      .integer(std::bit_cast<std::uint64_t>(scale));
  return writer.written();
}

Description parse_description(std::span<const std::byte> bytes) {
  transport::ByteReader reader(bytes);
  const auto magic = reader.integer<std::uint32_t>();
  Description description;
  description.sequence = reader.integer<std::int64_t>();
  const auto operation = reader.integer<std::uint8_t>();
  const auto dtype = reader.integer<std::uint8_t>();
  const auto reduce = reader.integer<std::uint8_t>();
  const auto way_and_hash = reader.integer<std::uint8_t>();
  description.count = reader.integer<std::int64_t>();
  description.root = reader.integer<std::int32_t>();
  description.group_size = reader.integer<std::uint32_t>();
  const auto hash = reader.integer<std::uint64_t>();
  reader.integer<std::uint64_t>();  // the scale
  reader.finish();
  const int way = way_and_hash & ~kHasHash;
  const bool has_hash = (way_and_hash & kHasHash) != 0;
  if (magic != kMagic || operation >= kOperations.size() || way % 16 >= kNumAlgorithms ||
      way / 16 > static_cast<int>(Order::kAny) || (hash != 0 && !has_hash) ||
      dtype > static_cast<std::uint8_t>(Dtype::kC128) ||
      reduce > static_cast<std::uint8_t>(kernels::kLastReduceOp)) {
    throw Error(ErrorKind::kCorruptData, "a message is no description of a collective");
  }
  description.operation = static_cast<Collective>(operation);
  description.dtype = static_cast<Dtype>(dtype);
  description.reduce = static_cast<kernels::ReduceOp>(reduce);
  description.algorithm = static_cast<Algorithm>(way % 16);
  description.order = static_cast<Order>(way / 16);
  if (has_hash) description.hash = hash;
  return description;
}

bool is_same_call(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::memcmp(a.data(), b.data(), kDescriptionBytes - sizeof(double)) == 0;
}

double scale_in(std::span<const std::byte> bytes) {
  transport::ByteReader reader(bytes.subspan(kDescriptionBytes - sizeof(double), sizeof(double)));
  return std::bit_cast<double>(reader.integer<std::uint64_t>());
}

}  // namespace trireme::collectives
