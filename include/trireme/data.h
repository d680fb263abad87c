#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/dtype.h"

namespace trireme::data {

/// How long dimensions are that differ from sample to sample, by name: {{"words", 57}}.
using Lengths = std::map<std::string, std::int64_t>;

/// One tensor of a sample.
struct Field {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;          ///< Of one sample, without the batch; of the longest.
  std::map<int, std::string> varying = {};  ///< Dimensions whose length differs, with its name.
  double padding = 0;                       ///< What is put behind a sample that is shorter.

  /// Of a sample of these lengths. kInvalidArgument where one is missing or more than the field has.
  std::vector<std::int64_t> shape_at(const Lengths& lengths) const;

  /// Of the longest sample. kInvalidArgument for a negative dimension or beyond 64 bits.
  std::int64_t num_bytes() const;
  /// Of a sample of these lengths. Errors of `shape_at` too.
  std::int64_t num_bytes(const Lengths& lengths) const;
  bool operator==(const Field&) const = default;
};

/// One sample as an order meets it.
struct Sample {
  std::int64_t index = 0;
  std::int64_t visit = 0;  ///< How often the order has been through all samples: the epoch.
};

/// Samples by index. Thread-safe: every method is const.
class Source {
 public:
  virtual ~Source() = default;

  virtual std::int64_t num_samples() const = 0;

  virtual const std::vector<Field>& fields() const = 0;

  /// Where dimensions differ from sample to sample: the lengths to which the samples of a microbatch are padded, shortest
  /// first. Taken is the first that holds all of them; the last holds every sample. Each is a shape that the model is recorded
  /// at: few are better. Empty: nothing differs.
  virtual std::vector<Lengths> padded_lengths() const { return {}; }

  /// A sample's own lengths, every name of `padded_lengths()`. A pure function; cheap: called for all samples of a step by
  /// every rank. Errors as of `read`.
  virtual Lengths lengths_of(Sample sample) const;

  /// Copies a sample out: `destinations[f]` gets the bytes of field f, at the sample's own lengths, dense in C order, and is
  /// just as long. A pure function of the sample; a source may make it differ from visit to visit.
  ///
  /// Errors   kInvalidArgument for an index out of range or destinations that do not fit; kIo and
  ///          kCorruptData from the medium. May block.
  virtual void read(Sample sample, std::span<const std::span<std::byte>> destinations) const = 0;

  /// Tells these samples from others, for a run that resumes; empty where the source cannot say.
  virtual std::string identity() const { return {}; }
};

/// `identity`, or for a source that has none `sampled` and the SHA-256 of its number of samples, its
/// fields and up to 64 samples spread over it: other data of the same form are told apart, a change
/// of few samples may not be.
///
/// Errors   those of Source::read.
std::string fingerprint(const Source& source);

/// Samples in memory that others may share. Immutable.
class InMemorySource : public Source {
 public:
  /// One field for all samples: `data` points at [num_samples, ...shape], dense in C order, and
  /// keeps it alive.
  struct Column {
    Field field;
    std::shared_ptr<const void> data;
  };

  /// Errors   kInvalidArgument: no column, negative number of samples, two fields of one name, or
  ///          a column without data though it has bytes.
  InMemorySource(std::int64_t num_samples, std::vector<Column> columns);

  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override;

  /// SHA-256 of the number of samples, all fields and their data. Cost: a pass over the data.
  std::string identity() const override;

 private:
  std::int64_t num_samples_;
  std::vector<Field> fields_;
  std::vector<std::int64_t> bytes_;  ///< Of one sample, per field.
  std::vector<std::shared_ptr<const void>> data_;
};

/// A shared copy of `values`, for `InMemorySource::Column::data`.
template <typename T>
std::shared_ptr<const void> share(std::vector<T> values) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return std::shared_ptr<const void>(owner, owner->data());
}

}  // namespace trireme::data
