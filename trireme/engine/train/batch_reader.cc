#include "trireme/engine/train/batch_reader.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <iterator>

#include "trireme/base/random.h"
#include "trireme/data/order.h"
#include "trireme/data/padding.h"
#include "trireme/data/parallel_read.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/error.h"

namespace trireme {

std::shared_ptr<const data::Source> tensor_source(
    const std::vector<std::pair<std::string, at::Tensor>>& fields) {
  std::vector<data::InMemorySource::Column> columns;
  std::int64_t num_samples = 0;
  for (const auto& [name, tensor] : fields) {
    if (!tensor.defined() || tensor.dim() == 0) {
      throw Error(ErrorKind::kInvalidArgument,
                  "field '" + name + "' needs a first dimension for the samples");
    }
    if (!columns.empty() && tensor.size(0) != num_samples) {
      throw Error(ErrorKind::kInvalidArgument, "field '" + name + "' has " +
                                                   std::to_string(tensor.size(0)) +
                                                   " samples, field '" + columns[0].field.name +
                                                   "' has " + std::to_string(num_samples));
    }
    num_samples = tensor.size(0);
    const auto dense = std::make_shared<const at::Tensor>(tensor.detach().cpu().contiguous());
    columns.push_back(
        {{name, record::to_dtype(tensor.scalar_type()), tensor.sizes().slice(1).vec()},
         std::shared_ptr<const void>(dense, dense->const_data_ptr())});
  }
  return std::make_shared<data::InMemorySource>(num_samples, std::move(columns));
}

}  // namespace trireme

namespace trireme::train {

BatchReader::BatchReader(std::shared_ptr<const data::Source> source, const Model& model,
                         kernels::Spread spread, std::shared_ptr<data::ReadParts> parts)
    : source_(std::move(source)),
      batch_dims_(model.batch_dims),
      spread_(std::move(spread)),
      parts_(std::move(parts)) {
  if (!source_ || source_->num_samples() == 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no samples; give it a source, as in trireme::tensor_source");
  }
  data::check_padding(*source_);
  padded_ = source_->padded_lengths();
}

Batch BatchReader::read(const std::vector<data::Sample>& samples) const {
  return read(samples, common_padding(samples));
}

Batch BatchReader::read(const std::vector<data::Sample>& samples, int padded) const {
  const auto& fields = source_->fields();
  const data::Lengths lengths = padded_.empty() ? data::Lengths() : padded_[padded];
  std::vector<at::Tensor> tensors;
  std::vector<std::span<std::byte>> first;  // Where the first sample's fields go.
  for (const data::Field& field : fields) {
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(samples.size())};
    for (const std::int64_t dim : field.shape_at(lengths)) shape.push_back(dim);
    tensors.push_back(at::empty(shape, record::to_scalar_type(field.dtype)));
    first.emplace_back(static_cast<std::byte*>(tensors.back().mutable_data_ptr()),
                       static_cast<std::size_t>(field.num_bytes(lengths)));
  }
  const auto read_one = [&](std::int64_t i) {
    const data::CountedReading counted(parts_.get());
    thread_local std::vector<std::span<std::byte>>
        places;  // Of small samples, allocation took longer than reading.
    places.clear();
    for (const std::span<std::byte> place : first) {
      places.emplace_back(place.data() + static_cast<std::size_t>(i) * place.size(), place.size());
    }
    read_padded(samples[static_cast<std::size_t>(i)], lengths, places);
  };
  data::read_each(std::ssize(samples), read_one, spread_);
  Batch batch;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto dim = batch_dims_.find(fields[f].name);
    const bool moves = dim != batch_dims_.end() && dim->second != 0;
    batch.set(fields[f].name, moves ? tensors[f].movedim(0, dim->second).contiguous() : tensors[f]);
  }
  return batch;
}

/// The sample at its own lengths, in front of its padding.
void BatchReader::read_padded(data::Sample sample, const data::Lengths& padded,
                              std::span<const std::span<std::byte>> places) const {
  if (padded.empty()) return source_->read(sample, places);
  const auto& fields = source_->fields();
  const data::Lengths lengths = source_->lengths_of(sample);
  std::vector<std::span<std::byte>> own(places.begin(), places.end());
  std::vector<std::vector<std::byte>> shorter(fields.size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    shorter[f].resize(static_cast<std::size_t>(fields[f].num_bytes(lengths)));
    if (shorter[f].size() != places[f].size()) own[f] = shorter[f];
  }
  source_->read(sample, own);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    if (shorter[f].size() == places[f].size()) continue;
    data::pad(fields[f], shorter[f], fields[f].shape_at(lengths), places[f],
              fields[f].shape_at(padded));
  }
}

namespace {

std::vector<data::Sample> samples_of(data::IndexRange range) {
  std::vector<data::Sample> samples;
  for (std::int64_t i = range.begin; i < range.end; ++i) samples.push_back({i});
  return samples;
}

}  // namespace

Batch BatchReader::read(data::IndexRange range) const {
  const std::vector<data::Sample> samples = samples_of(range);
  will_read(samples);
  return read(samples);
}

int BatchReader::padded_index(data::Sample sample) const {
  return data::padded_index(padded_, source_->lengths_of(sample));
}

int BatchReader::common_padding(const std::vector<data::Sample>& samples) const {
  int padded = 0;
  if (padded_.empty()) return padded;
  for (const data::Sample& sample : samples) padded = std::max(padded, padded_index(sample));
  return padded;
}

graph::BatchSize BatchReader::size_of(const std::vector<data::Sample>& samples) const {
  const int padded = common_padding(samples);
  const bool is_longest = padded_.empty() || padded + 1 == std::ssize(padded_);
  return {static_cast<std::int64_t>(samples.size()), is_longest ? -1 : padded};
}

graph::BatchSize BatchReader::size_of(data::IndexRange range) const {
  return size_of(samples_of(range));
}

/// Samples that are padded to that length at most.
std::vector<data::Sample> BatchReader::pick(std::int64_t size, std::uint64_t seed,
                                            int most_padded) const {
  const std::int64_t num_samples = source_->num_samples();
  const data::SampleOrder order(num_samples, seed);
  std::vector<data::Sample> samples;
  for (std::int64_t i = 0; std::ssize(samples) < size; ++i) {
    if (i == num_samples && samples.empty()) {
      throw Error(ErrorKind::kInvalidArgument, "no sample is short enough for the padded lengths " +
                                                   data::lengths_text(padded_[most_padded]) +
                                                   "; leave them out");
    }
    const data::Sample sample{order.sample_at(i)};
    if (padded_.empty() || padded_index(sample) <= most_padded) samples.push_back(sample);
  }
  return samples;
}

record::BatchMaker BatchReader::maker() const { return makers().back().make; }

std::vector<record::PaddedBatches> BatchReader::makers() const {
  std::vector<record::PaddedBatches> result;
  for (int i = 0; i < std::max(1, static_cast<int>(padded_.size())); ++i) {
    const auto make = [reader = *this, i](std::int64_t size, std::uint64_t seed) {
      return reader.read(reader.pick(size, seed, i), i);
    };
    result.push_back({padded_.empty() ? data::Lengths() : padded_[i], make});
  }
  return result;
}

StepReader::StepReader(const Workload& workload, const BatchLayout& batch, std::uint64_t seed,
                       data::OrderKind order, kernels::Spread spread)
    : workload_(workload),
      batch_(batch),
      parts_(std::make_shared<data::ReadParts>()),
      reader_(workload.training, workload.model, std::move(spread), parts_),
      order_(workload.training->num_samples(), seed, order, workload.training->repeats(),
             batch.global_batch),
      fed_(std::dynamic_pointer_cast<const FedSource>(workload.training)) {}

/// For each place of the step the index of its sample; null where they come as they are.
StepReader::Deal StepReader::deal_of(std::int64_t step) const {
  if (reader_.padded_lengths().size() < 2) return nullptr;
  constexpr std::size_t kMostDeals = 8;
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = deals_.find(step); known != deals_.end()) return known->second;
  }
  std::vector<int> padded;
  for (std::int64_t i = 0; i < batch_.global_batch; ++i) {
    const std::int64_t index = step * batch_.global_batch + i;
    padded.push_back(reader_.padded_index(order_.sample_at(index)));
  }
  auto deal = std::make_shared<const std::vector<std::int64_t>>(
      data::dealt_by_length(padded, {batch_.global_batch, batch_.microbatch}, batch_.lanes));
  const std::scoped_lock lock(mutex_);
  if (deals_.size() >= kMostDeals) deals_.erase(deals_.begin());
  deals_[step] = deal;
  return deal;
}

std::vector<data::Sample> StepReader::samples_of(std::int64_t step, std::int64_t microbatch) const {
  const data::BatchNumbers numbers{batch_.global_batch, batch_.microbatch};
  const std::int64_t begin = step * numbers.global_batch;
  const data::IndexRange range = data::microbatch_range(numbers, begin, microbatch);
  const Deal deal = deal_of(step);
  std::vector<data::Sample> samples;
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    const std::int64_t index = deal ? begin + (*deal)[i - begin] : i;
    samples.push_back(order_.sample_at(index));
  }
  if (fed_) std::erase_if(samples, [this](data::Sample sample) { return !fed_->has(sample); });
  return samples;
}

graph::BatchSize StepReader::size_of(std::int64_t step, std::int64_t microbatch) const {
  if (fed_) return {static_cast<std::int64_t>(samples_of(step, microbatch).size())};
  if (reader_.padded_lengths().empty()) return {batch_.microbatch};
  return reader_.size_of(samples_of(step, microbatch));
}

std::vector<data::Sample> StepReader::announce(std::int64_t step, std::int64_t microbatch) const {
  std::vector<data::Sample> samples = samples_of(step, microbatch);
  reader_.will_read(samples);
  return samples;
}

Batch StepReader::read(std::int64_t step, std::int64_t microbatch) const {
  return read(step, announce(step, microbatch));
}

Batch StepReader::read(std::int64_t step, const std::vector<data::Sample>& samples) const {
  Batch batch = reader_.read(samples);
  set_step_scalars(batch, workload_.model, step);
  return batch;
}

}  // namespace trireme::train
