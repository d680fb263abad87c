#include "trireme/engine/parameters/replica_sums.h"

#include <ATen/ops/from_blob.h>
#include <xxhash.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/check.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/error.h"
#include "trireme/kernels/half.h"
#include "trireme/kernels/reduce/fold.h"

namespace trireme::parameters {
namespace {

/// Of a bucket, by replica, in units of `each` per element.
std::vector<std::int64_t> shard_sizes(const layout::Bucket& bucket, std::int64_t each) {
  std::vector<std::int64_t> sizes;
  for (const layout::Shard& shard : bucket.shards) {
    sizes.push_back((shard.end_elements - shard.begin_elements) * each);
  }
  return sizes;
}

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr());
}

kernels::Bf16* bf16_of(const at::Tensor& flat) {
  return static_cast<kernels::Bf16*>(flat.mutable_data_ptr());
}

collectives::Elements elements_of(const at::Tensor& flat) {
  const Dtype dtype = flat.scalar_type() == at::kDouble  ? Dtype::kF64
                      : flat.scalar_type() == at::kFloat ? Dtype::kF32
                                                         : Dtype::kBf16;
  return {{static_cast<std::byte*>(flat.mutable_data_ptr()), flat.nbytes()}, dtype};
}

}  // namespace

Reducer::Reducer(LaneAccumulator& sums, const layout::ParameterMap& map,
                 std::vector<bool> scattered, collectives::Group& group)
    : sums_(sums), map_(map), scattered_(std::move(scattered)), group_(group) {
  const FlatMemory memory = memory_of(group);
  for (int b = 0; b < static_cast<int>(map.buckets.size()); ++b) {
    const at::Tensor& flat = sums.gradients().flat(b);
    const bool is_sent = flat.defined() && sums.is_rounded(b);  // Temporary ones are made later.
    sent_.push_back(is_sent ? memory(flat.numel() * 2).view(at::kBFloat16) : at::Tensor());
  }
}

Reducer::~Reducer() {
  for (const auto& [bucket, work] : works_) {
    if (sums_.gradients().is_temporary(bucket)) wait_for_end(*work, group_);
  }
}

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
  const bool is_rounded = sums_.is_rounded(bucket);
  if (is_rounded) {
    if (!sent_[bucket].defined()) sent_[bucket] = at::empty({flat.numel()}, at::kBFloat16);
    kernels::round_to(flat.const_data_ptr<float>(), bf16_of(sent_[bucket]), flat.numel());
  }
  const at::Tensor& sent = is_rounded ? sent_[bucket] : flat;
  const collectives::Elements elements = elements_of(sent);
  const auto by = is_rounded ? kernels::ReduceOp::kRoundedSum : kernels::ReduceOp::kSum;
  works_[bucket] = scattered_[bucket]
                       ? group_.reduce_scatter(elements, shard_sizes(map_.buckets[bucket], 1), by)
                       : group_.all_reduce(elements, by);
}

void Reducer::take(int bucket) {
  at::Tensor& sent = sent_[bucket];
  const layout::Shard all{.end_elements = map_.buckets[bucket].num_elements};
  const layout::Shard& part =
      scattered_[bucket] ? map_.buckets[bucket].shards[group_.group_rank()] : all;
  if (sent.defined()) {
    float* sum = sums_.gradients().flat(bucket).mutable_data_ptr<float>();
    kernels::fold(kernels::FoldStep::kFirst, bf16_of(sent) + part.begin_elements,
                  sum + part.begin_elements, part.end_elements - part.begin_elements);
  }
  if (!sums_.gradients().is_temporary(bucket)) return;
  sent = at::Tensor();
  sums_.keep_shard(bucket, part);
}

transport::WorkPtr Reducer::work(int bucket) const {
  const auto found = works_.find(bucket);
  TRIREME_CHECK(found != works_.end(), "bucket " + std::to_string(bucket) + " was never complete");
  return found->second;
}

transport::WorkPtr gather_shards(const at::Tensor& mine, const at::Tensor& flat,
                                 const layout::Bucket& bucket, collectives::Group& group) {
  return group.all_gather(std::as_bytes(std::span(bytes_of(mine), mine.nbytes())),
                          {bytes_of(flat), flat.nbytes()},
                          shard_sizes(bucket, static_cast<std::int64_t>(flat.element_size())));
}

void wait_for_end(transport::Work& work, const collectives::Group& group) {
  try {
    work.wait_for(group.deadline());
  } catch (const Error&) {
    // It has ended.
  }
}

void attach_value_hashes(const ParameterStore& store, collectives::Group& group) {
  for (std::size_t b = 0; b < store.map().buckets.size(); ++b) {
    const at::Tensor& values = store.flat_values(static_cast<int>(b));
    if (values.defined()) {
      group.attach_hash(XXH3_64bits(values.const_data_ptr(), values.nbytes()));
    }
  }
}

FlatMemory memory_of(collectives::Group& group) {
  return [&group](std::int64_t bytes) {
    const std::span<std::byte> memory = group.allocate(static_cast<std::size_t>(bytes));
    const auto counted = std::make_shared<memory::OtherMemory>(bytes);  // held by the tensor
    return at::from_blob(
        memory.data(), {bytes}, [counted](void*) {}, at::TensorOptions().dtype(at::kByte));
  };
}

}  // namespace trireme::parameters
