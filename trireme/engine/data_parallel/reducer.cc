#include "trireme/engine/data_parallel/reducer.h"

#include <string>
#include <utility>

#include "trireme/base/error.h"

namespace trireme::data_parallel {

Reducer::Reducer(parameters::LaneAccumulator& sums, collectives::Group& group,
                 std::vector<int> buckets)
    : sums_(sums), group_(group), buckets_(std::move(buckets)) {}

void Reducer::begin_step() {
  complete_.clear();
  works_.clear();
  num_started_ = 0;
}

void Reducer::on_sum(int bucket) {
  complete_.insert(bucket);
  while (num_started_ < buckets_.size() && complete_.contains(buckets_[num_started_])) {
    start(buckets_[num_started_++]);
  }
}

void Reducer::start(int bucket) {
  const at::Tensor& flat = sums_.gradients().flat(bucket);
  const auto n = static_cast<std::size_t>(flat.numel());
  works_[bucket] = flat.scalar_type() == at::kDouble
                       ? group_.all_reduce(std::span(flat.mutable_data_ptr<double>(), n))
                       : group_.all_reduce(std::span(flat.mutable_data_ptr<float>(), n));
}

transport::WorkPtr Reducer::work(int bucket) const {
  const auto found = works_.find(bucket);
  TRIREME_CHECK(found != works_.end(), "bucket " + std::to_string(bucket) + " was never complete");
  return found->second;
}

}  // namespace trireme::data_parallel
