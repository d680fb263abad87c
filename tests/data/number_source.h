#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trireme/data.h"
#include "trireme/error.h"

namespace trireme::data {

/// Samples whose one field says which sample it is: base + index, and the visit. Some may be damaged.
class NumberSource : public Source {
 public:
  NumberSource(std::int64_t base, std::int64_t num_samples, std::set<std::int64_t> damaged = {})
      : base_(base), num_samples_(num_samples), damaged_(std::move(damaged)) {}

  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override {
    if (sample.index < 0 || sample.index >= num_samples_) {
      throw Error(ErrorKind::kInvalidArgument, "there is no sample");
    }
    const std::int64_t values[] = {base_ + sample.index, sample.visit};
    std::memcpy(destinations[0].data(), values, sizeof values);
    if (!damaged_.contains(sample.index)) return;
    throw Error(ErrorKind::kCorruptData, "record " + std::to_string(sample.index) + " is broken");
  }

 private:
  std::int64_t base_, num_samples_;
  std::set<std::int64_t> damaged_;
  std::vector<Field> fields_ = {{"number", Dtype::kI64, {2}}};
};

/// What a NumberSource says, through any decorators.
inline Sample number_at(const Source& source, std::int64_t index, std::int64_t visit = 0) {
  std::int64_t values[2] = {-1, -1};
  const std::span<std::byte> destination = std::as_writable_bytes(std::span(values));
  source.read({.index = index, .visit = visit}, {&destination, 1});
  return {.index = values[0], .visit = values[1]};
}

}  // namespace trireme::data
