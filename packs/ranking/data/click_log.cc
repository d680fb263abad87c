#include "packs/ranking/data/click_log.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trireme/error.h"

namespace trireme::ranking {
namespace {

constexpr std::int64_t kMostColumns = std::int64_t{1} << 20;

std::int64_t at_least(std::int64_t number, std::int64_t least, const std::string& what) {
  if (number >= least && number <= kMostColumns) return number;
  throw Error(ErrorKind::kInvalidArgument, "click log: " + std::to_string(number) + " " + what +
                                               "; expected " + std::to_string(least) + " to 2^20");
}

data::FixedRecordOptions record_options(const ClickLogOptions& options) {
  const std::int64_t num_words = 1 + at_least(options.num_dense, 0, "dense numbers") +
                                 at_least(options.num_categories, 0, "categories");
  return {.fields = {{"words", Dtype::kI32, {num_words}}},
          .access = options.access,
          .num_in_flight = options.num_in_flight,
          .ahead_bytes = options.ahead_bytes};
}

}  // namespace

ClickLog::ClickLog(const std::vector<std::filesystem::path>& paths, const ClickLogOptions& options)
    : fields_{{"label", Dtype::kF32, {}},
              {"dense", Dtype::kF32, {options.num_dense}},
              {"categories", Dtype::kI64, {options.num_categories}}},
      max_rows_(options.max_rows),
      records_(paths, record_options(options)) {
  if (max_rows_ >= 0) return;
  throw Error(ErrorKind::kInvalidArgument, "click log: tables of " + std::to_string(max_rows_) +
                                               " rows at most; expected 0 or more");
}

void ClickLog::check_destinations(std::span<const std::span<std::byte>> destinations) const {
  bool fits = destinations.size() == fields_.size();
  for (std::size_t f = 0; fits && f < fields_.size(); ++f) {
    fits = std::ssize(destinations[f]) == fields_[f].num_bytes();
  }
  if (fits) return;
  throw Error(ErrorKind::kInvalidArgument,
              "click log: expected destinations for label, dense and categories, as long as these");
}

void ClickLog::read(data::Sample sample, std::span<const std::span<std::byte>> destinations) const {
  check_destinations(destinations);
  std::vector<std::int32_t> words(static_cast<std::size_t>(records_.record_bytes()) / 4);
  const std::span<std::byte> record = std::as_writable_bytes(std::span(words));
  records_.read(sample, {&record, 1});
  const auto num_dense = static_cast<std::size_t>(fields_[1].shape[0]);
  const auto refuse = [&](const std::string& problem) {
    throw Error(ErrorKind::kCorruptData, records_.name(sample.index) + " has " + problem);
  };
  if (words[0] != 0 && words[0] != 1) {
    refuse("label " + std::to_string(words[0]) + "; expected 0 or 1");
  }
  const auto label = static_cast<float>(words[0]);
  std::memcpy(destinations[0].data(), &label, sizeof label);
  for (std::size_t i = 0; i < num_dense; ++i) {
    // In f64, and rounded once: the same bits from every library of mathematics but for one number in 2^28.
    const auto value =
        static_cast<float>(std::log1p(static_cast<double>(std::max(words[1 + i], 0))));
    std::memcpy(destinations[1].data() + i * sizeof value, &value, sizeof value);
  }
  for (std::size_t i = 1 + num_dense; i < words.size(); ++i) {
    std::int64_t category = words[i];
    if (category < 0) {
      refuse("category " + std::to_string(category) + " in column " +
             std::to_string(i - 1 - num_dense) + "; expected 0 or more");
    }
    if (max_rows_ > 0) category %= max_rows_;
    std::memcpy(destinations[2].data() + (i - 1 - num_dense) * sizeof category, &category,
                sizeof category);
  }
}

}  // namespace trireme::ranking
