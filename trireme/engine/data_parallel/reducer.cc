#include "trireme/engine/data_parallel/reducer.h"

#include <string>

#include "trireme/base/check.h"
#include "trireme/error.h"

namespace trireme::data_parallel {

void Reducer::begin_step() {
  expected_.clear();
  complete_.clear();
  works_.clear();
  num_started_ = 0;
}

void Reducer::expect(int bucket) {
  expected_.push_back(bucket);
  start_complete();
}

void Reducer::on_sum(int bucket) {
  complete_.insert(bucket);
  start_complete();
}

void Reducer::start_complete() {
  while (num_started_ < expected_.size() && complete_.contains(expected_[num_started_])) {
    start(expected_[num_started_++]);
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
