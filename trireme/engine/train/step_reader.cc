#include "trireme/engine/train/step_reader.h"

#include "trireme/data/range.h"

namespace trireme::train {

StepReader::StepReader(const Workload& workload, const BatchLayout& batch, std::uint64_t seed)
    : workload_(workload),
      batch_(batch),
      reader_(workload.training, workload.model),
      order_(workload.training->num_samples(), seed) {}

Batch StepReader::read(std::int64_t step, std::int64_t microbatch) const {
  const data::BatchNumbers numbers{batch_.global_batch, batch_.microbatch};
  const data::IndexRange range =
      data::microbatch_range(numbers, step * numbers.global_batch, microbatch);
  std::vector<data::Sample> samples;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    samples.push_back({order_.sample_at(i), order_.epoch_at(i)});
  }
  Batch batch = reader_.read(samples);
  set_step_scalars(batch, workload_.model, step);
  return batch;
}

}  // namespace trireme::train
