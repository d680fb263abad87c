#include "trireme/engine/train/rank_batches.h"

#include <algorithm>
#include <utility>

#include "trireme/plan/layout/plan.h"
#include "trireme/plan/simulate/rank_memory.h"

namespace trireme::train {
namespace {

int batches_ahead(std::int64_t batch_bytes, int num_kept) {
  return std::max(simulate::batches_ahead(batch_bytes), num_kept);
}

Batch only(const Batch& batch, const std::vector<std::string>& fields) {
  Batch result;
  for (const std::string& field : fields) result.set(field, batch[field]);
  return result;
}

}  // namespace

RankBatches::RankBatches(const StepReader& reader, const record::Recording& recording,
                         const program::StageProgram& stage, const layout::Plan& plan, int replica)
    : graph_(recording.graph),
      stage_(stage),
      num_samples_(plan.batch.microbatch),
      num_microbatches_(
          static_cast<int>(plan.batch.num_microbatches() / layout::train_role(plan).mesh.data)),
      first_(std::int64_t{replica} * num_microbatches_),
      weights_(recording, {stage.weighed_losses().begin(), stage.weighed_losses().end()}),
      keeps_(
          weights_.reads_batch() && !stage.fields().empty() &&
          simulate::keeps_batches(simulate::batch_bytes(graph_, num_samples_), num_microbatches_)),
      prefetch_(reader, reading_order(),
                batches_ahead(simulate::batch_bytes(graph_, num_samples_),
                              keeps_ ? num_microbatches_ : 0)) {}

/// Global microbatches as a step reads them: for their weights, then for their forwards.
std::vector<std::int64_t> RankBatches::reading_order() const {
  std::vector<std::int64_t> order;
  for (const bool reads : {weights_.reads_batch(), !stage_.fields().empty() && !keeps_}) {
    for (int m = 0; reads && m < num_microbatches_; ++m) order.push_back(first_ + m);
  }
  return order;
}

std::vector<std::vector<double>> RankBatches::weigh(std::int64_t step) {
  kept_.clear();
  std::vector<std::vector<double>> weights;
  for (int m = 0; m < num_microbatches_; ++m) {
    const Batch batch = weights_.reads_batch() ? prefetch_.take(step, first_ + m) : Batch();
    weights.push_back(weights_.weights(batch, num_samples_));
    if (keeps_) kept_[m] = only(batch, stage_.fields());
  }
  return weights;
}

Batch RankBatches::take(std::int64_t step, int microbatch) {
  if (!keeps_) return prefetch_.take(step, first_ + microbatch);
  return std::move(kept_.extract(microbatch).mapped());
}

}  // namespace trireme::train
