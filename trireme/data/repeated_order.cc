#include "trireme/data/repeated_order.h"

#include <algorithm>
#include <string>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

constexpr std::int64_t kMostPlaces = std::int64_t{1} << 62;

/// Permutations by what they are of, each with a stream of its own.
enum class Permuted : std::uint8_t { kRows, kRest };

[[noreturn]] void refuse_repeats(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "repeated samples: " + problem);
}

}  // namespace

/// A pass over a block.
struct RepeatedOrder::Pass {
  std::int64_t epoch = 0, block = 0, pass = 0;
  std::int64_t size = 0;  ///< Samples of the block.
};

RepeatedOrder::RepeatedOrder(std::int64_t num_samples, std::uint64_t seed, OrderKind kind,
                             const SampleRepeats& repeats, std::int64_t batch)
    : order_(num_samples, seed, kind),
      seed_(seed),
      times_(repeats.times == 0 ? 1 : repeats.times),
      batch_(batch),
      block_(0) {
  const auto check = [](std::int64_t number, const std::string& what) {
    if (number < 1) refuse_repeats(what + " is " + std::to_string(number) + "; expected 1 or more");
  };
  check(times_, "how often each is used");
  if (times_ == 1) return;
  check(batch, "the batch");
  check(repeats.block_samples, "the block");
  if (times_ > kMostPlaces / num_samples) {
    refuse_repeats(std::to_string(num_samples) + " samples " + std::to_string(times_) +
                   " times are more than 2^62");
  }
  block_ = std::max(std::int64_t{1}, repeats.block_samples / batch) * batch;
}

Sample RepeatedOrder::sample_at(std::int64_t global_index) const {
  if (times_ == 1) {
    return {.index = order_.sample_at(global_index), .visit = order_.epoch_at(global_index)};
  }
  if (global_index < 0) {
    refuse_repeats("a place is not negative, got " + std::to_string(global_index));
  }
  const std::int64_t count = order_.num_samples();
  const std::int64_t place = global_index % (count * times_);
  Pass pass{.epoch = global_index / (count * times_), .block = place / times_ / block_};
  const std::int64_t first = pass.block * block_;
  pass.size = std::min(block_, count - first);
  const std::int64_t in_block = place - first * times_;
  pass.pass = in_block / pass.size;
  const std::int64_t in_order = first + within_block(pass, in_block % pass.size);
  return {.index = order_.sample_at(pass.epoch * count + in_order),
          .visit = pass.epoch * times_ + pass.pass};
}

/// Which of the block's samples, in the epoch's order, comes at `place` of the pass. Letters as in the header; c counts columns
/// from the pass's first one, which is t further than that of the pass before:
///
///     rows 0 .. R-1   c = 0 .. B-1   R samples of that column of the batch, and where c < t one of the rest more
///     row R           c = 0 .. t-1
std::int64_t RepeatedOrder::within_block(const Pass& pass, std::int64_t place) const {
  if (pass.pass == 0) return place;
  const auto permuted = [&](std::int64_t count, std::int64_t i, Permuted what, std::int64_t where) {
    if (count == 1) return i;
    const auto word = [](std::int64_t number) { return static_cast<std::uint64_t>(number); };
    const std::uint64_t key =
        stream_seed(seed_, {word(pass.epoch), word(pass.block), word(pass.pass),
                            static_cast<std::uint64_t>(what), word(where)});
    return SampleOrder(count, key).sample_at(i);
  };
  const std::int64_t rows = pass.size / batch_, rest = pass.size % batch_;
  const std::int64_t column = place % batch_;
  const std::int64_t in_column = rows + (column < rest ? 1 : 0);
  const std::int64_t row = permuted(in_column, place / batch_, Permuted::kRows, column);
  if (row == rows) return rows * batch_ + permuted(rest, column, Permuted::kRest, 0);
  return row * batch_ + (column + pass.pass % batch_ * rest) % batch_;
}

}  // namespace trireme::data
