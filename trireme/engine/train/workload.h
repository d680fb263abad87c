#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/data/range.h"
#include "trireme/data/source.h"
#include "trireme/engine/record/model.h"
#include "trireme/engine/record/recording.h"

namespace trireme {

/// What a program trains: a model and its data.
struct Workload {
  Model model;
  std::shared_ptr<const data::Source> training;    ///< Its fields are those of the model's batch.
  std::shared_ptr<const data::Source> evaluation;  ///< May be null.

  /// A few things that the model does with the weights that it has, for people; may be null. Called
  /// on the first rank when training has ended, with all weights in the model, in eval mode.
  std::function<std::string()> examples = nullptr;
};

/// Makes a workload; called under a fixed state of torch's generator, so the same each time.
using MakeWorkload = std::function<Workload()>;

/// Samples held in tensors, each [num_samples, ...]; shares their memory where they are dense.
///
/// Errors   kInvalidArgument where the numbers of samples differ.
std::shared_ptr<const data::Source> tensor_source(
    const std::vector<std::pair<std::string, at::Tensor>>& fields);

}  // namespace trireme

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
