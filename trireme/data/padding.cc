#include "trireme/data/padding.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <string>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ErrorKind::kInvalidArgument, "padded lengths: " + problem);
}

bool holds(const Lengths& padded, const Lengths& lengths) {
  return std::ranges::all_of(padded, [&](const auto& one) {
    const auto own = lengths.find(one.first);
    if (own == lengths.end()) refuse("a sample does not say how long its '" + one.first + "' is");
    return own->second >= 0 && own->second <= one.second;
  });
}

std::set<std::string> names_of(const Lengths& lengths) {
  std::set<std::string> names;
  for (const auto& [name, length] : lengths) names.insert(name);
  return names;
}

void check_ascending(const std::vector<Lengths>& padded) {
  for (std::size_t i = 0; i + 1 < padded.size(); ++i) {
    if (names_of(padded[i]) != names_of(padded[i + 1])) {
      refuse(lengths_text(padded[i]) + " and " + lengths_text(padded[i + 1]) +
             " are not of the same dimensions");
    }
    if (padded[i] == padded[i + 1] || !holds(padded[i + 1], padded[i])) {
      refuse(lengths_text(padded[i]) + " comes before " + lengths_text(padded[i + 1]) +
             "; give them shortest first, each in no dimension shorter than the one before");
    }
  }
  for (const auto& [name, length] : padded.front()) {
    if (length < 1) refuse("'" + name + "' is " + std::to_string(length) + "; give it at least 1");
  }
}

/// One value of the field's dtype; nothing where it cannot hold the number.
template <typename T>
std::vector<std::byte> bytes_as(double number) {
  const T value = static_cast<T>(number);
  if (static_cast<double>(value) != number) return {};
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::vector<std::byte> padding_of(const Field& field) {
  if (field.padding == 0) return std::vector<std::byte>(size_bytes(field.dtype));
  std::vector<std::byte> bytes;
  switch (field.dtype) {
    case Dtype::kF64:
      bytes = bytes_as<double>(field.padding);
      break;
    case Dtype::kF32:
      bytes = bytes_as<float>(field.padding);
      break;
    case Dtype::kI64:
      bytes = bytes_as<std::int64_t>(field.padding);
      break;
    case Dtype::kI32:
      bytes = bytes_as<std::int32_t>(field.padding);
      break;
    case Dtype::kI16:
      bytes = bytes_as<std::int16_t>(field.padding);
      break;
    case Dtype::kI8:
      bytes = bytes_as<std::int8_t>(field.padding);
      break;
    case Dtype::kU8:
      bytes = bytes_as<std::uint8_t>(field.padding);
      break;
    default:
      break;
  }
  if (!bytes.empty()) return bytes;
  refuse("field '" + field.name + "' is " + std::string(to_text(field.dtype)) +
         " and cannot hold the padding " + std::to_string(field.padding));
}

void fill(std::span<std::byte> memory, const std::vector<std::byte>& value) {
  if (std::ranges::all_of(value, [](std::byte byte) { return byte == std::byte{0}; })) {
    std::ranges::fill(memory, std::byte{0});
    return;
  }
  for (std::size_t at = 0; at < memory.size(); at += value.size()) {
    std::memcpy(memory.data() + at, value.data(), value.size());
  }
}

}  // namespace

std::string lengths_text(const Lengths& lengths) {
  std::string text;
  for (const auto& [name, length] : lengths) {
    text += (text.empty() ? "" : ", ") + name + " " + std::to_string(length);
  }
  return text;
}

int padded_index(const std::vector<Lengths>& padded, const Lengths& lengths) {
  for (std::size_t i = 0; i < padded.size(); ++i) {
    if (holds(padded[i], lengths)) return static_cast<int>(i);
  }
  refuse("a sample of the lengths " + lengths_text(lengths) + " is longer than the longest, " +
         lengths_text(padded.back()));
}

void check_padding(const Source& source) {
  const std::vector<Lengths> padded = source.padded_lengths();
  std::set<std::string> used;
  for (const Field& field : source.fields()) {
    for (const auto& [dim, name] : field.varying) {
      used.insert(name);
      const bool is_known = !padded.empty() && padded.back().contains(name);
      if (!is_known || field.shape_at(padded.back()) != field.shape) {
        refuse("field '" + field.name + "' says that its dimension " + std::to_string(dim) +
               " is '" + name + "', at most " + std::to_string(field.shape[dim]) +
               " long, and the longest padded lengths are " +
               (padded.empty() ? "none" : lengths_text(padded.back())));
      }
    }
    padding_of(field);
  }
  if (padded.empty()) return;
  check_ascending(padded);
  for (const std::string& name : names_of(padded.back())) {
    if (!used.contains(name)) refuse("no field has a dimension '" + name + "'");
  }
}

std::vector<std::int64_t> dealt_by_length(const std::vector<int>& padded, const BatchNumbers& batch,
                                          std::int64_t num_lanes) {
  const std::int64_t num_microbatches = batch.global_batch / batch.microbatch;
  const std::int64_t rows = num_microbatches / num_lanes;
  TRIREME_CHECK(std::ssize(padded) == batch.global_batch && rows * num_lanes == num_microbatches,
                "lanes of a step");
  std::vector<std::int64_t> sorted(padded.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(sorted, std::greater(), [&](std::int64_t i) { return padded[i]; });
  std::vector<std::int64_t> dealt(padded.size());
  for (std::int64_t g = 0; g < num_microbatches; ++g) {
    const std::int64_t row = g / num_lanes, column = g % num_lanes;
    const std::int64_t lane = row % 2 == 0 ? column : num_lanes - 1 - column;
    std::copy_n(sorted.begin() + g * batch.microbatch, batch.microbatch,
                dealt.begin() + (lane * rows + row) * batch.microbatch);
  }
  return dealt;
}

void pad(const Field& field, std::span<const std::byte> sample,
         const std::vector<std::int64_t>& shape, std::span<std::byte> destination,
         const std::vector<std::int64_t>& padded_shape) {
  fill(destination, padding_of(field));
  if (sample.empty()) return;
  if (shape.empty()) {
    std::memcpy(destination.data(), sample.data(), sample.size());
    return;
  }
  // Runs that are whole in both: dimensions behind the last one that differs, and what the sample has of that.
  std::size_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != padded_shape[d]) last = d;
  }
  std::size_t run = size_bytes(field.dtype), step = run;
  for (std::size_t d = last; d < shape.size(); ++d) {
    run *= static_cast<std::size_t>(shape[d]);
    step *= static_cast<std::size_t>(padded_shape[d]);
  }
  const std::size_t num_runs = sample.size() / run;
  for (std::size_t i = 0; i < num_runs; ++i) {
    // The place of run i among the padded ones: its coordinates in the dimensions before `last`.
    std::size_t rest = i, place = 0, scale = 1;
    for (std::size_t d = last; d-- > 0;) {
      place += rest % static_cast<std::size_t>(shape[d]) * scale;
      rest /= static_cast<std::size_t>(shape[d]);
      scale *= static_cast<std::size_t>(padded_shape[d]);
    }
    std::memcpy(destination.data() + place * step, sample.data() + i * run, run);
  }
}

}  // namespace trireme::data
