#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "python/core/bind.h"
#include "trireme/engine/train/fed_source.h"

namespace trireme::python {

/// Samples that the training loop hands in, batch by batch: those of step s are there once `push(s, ..)`
/// was called. A rank has the rows of its replica alone.
///
/// Thread-safe: others read while one pushes.
class Feed : public train::FedSource {
 public:
  using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

  /// first      the replica's rows of the first step, by field: [num_rows, ...].
  /// replica    of `replicas`, which have as many rows each.
  /// any_size   whether later steps may have other numbers of rows, not only smaller ones.
  Feed(const NamedTensors& first, int replicas, int replica, bool any_size = false);

  std::int64_t num_samples() const override;
  const std::vector<data::Field>& fields() const override { return fields_; }

  /// The identity of what is not known before: none is kept.
  std::string identity() const override { return "fed step by step"; }

  /// Sample::visit is the step. Waits until it was pushed; recordings, which ask for step 0 later on,
  /// get the rows there are. kCancelled once it is closed.
  void read(data::Sample sample, std::span<const std::span<std::byte>> places) const override;

  /// Whether the step has so many rows.
  bool has(data::Sample sample) const override;

  /// Replaces the rows. kInvalidArgument, naming the field, where they are not as the first step's.
  void push(std::int64_t step, const NamedTensors& rows);

  /// Whoever waits, and reads from now on, gets kCancelled.
  void close();

 private:
  using Rows = std::shared_ptr<const data::Source>;

  Rows rows_of(std::int64_t step) const;

  std::int64_t rows_of_first_;
  int replicas_;
  int replica_;
  bool any_size_;
  std::vector<data::Field> fields_;

  mutable std::mutex mutex_;  ///< Of all below.
  mutable std::condition_variable changed_;
  Rows rows_;
  std::int64_t step_ = -1;  ///< That rows_ are of.
  bool is_closed_ = false;
};

}  // namespace trireme::python
