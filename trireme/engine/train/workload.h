#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/data.h"
#include "trireme/data/range.h"
#include "trireme/engine/record/recording.h"
#include "trireme/model.h"

namespace trireme::train {

/// Makes batches out of the samples of a source: [n, ...shape], the batch at the dimension that the
/// model declares. Immutable, thread-safe.
class BatchReader {
 public:
  BatchReader(std::shared_ptr<const data::Source> source, const Model& model);

  Batch read(const std::vector<data::Sample>& samples) const;

  /// Samples of these indices, as they come in an evaluation.
  Batch read(data::IndexRange range) const;

  /// For recordings: `size` samples picked by the seed, repeats where the source has fewer.
  record::BatchMaker maker() const;

 private:
  std::shared_ptr<const data::Source> source_;
  std::map<std::string, int> batch_dims_;
};

}  // namespace trireme::train
