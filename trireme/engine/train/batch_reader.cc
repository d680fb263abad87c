#include "trireme/engine/train/batch_reader.h"

#include <ATen/Functions.h>

#include "trireme/base/random.h"
#include "trireme/data/order.h"
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

BatchReader::BatchReader(std::shared_ptr<const data::Source> source, const Model& model)
    : source_(std::move(source)), batch_dims_(model.batch_dims) {
  if (!source_ || source_->num_samples() == 0) {
    throw Error(ErrorKind::kInvalidArgument,
                "the workload has no samples; give it a source, as in trireme::tensor_source");
  }
}

Batch BatchReader::read(const std::vector<data::Sample>& samples) const {
  const auto& fields = source_->fields();
  std::vector<at::Tensor> tensors;
  for (const data::Field& field : fields) {
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(samples.size())};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    tensors.push_back(at::empty(shape, record::to_scalar_type(field.dtype)));
  }
  std::vector<std::span<std::byte>> places(fields.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto bytes = static_cast<std::size_t>(fields[f].num_bytes());
      places[f] = {static_cast<std::byte*>(tensors[f].mutable_data_ptr()) + i * bytes, bytes};
    }
    source_->read(samples[i], places);
  }
  Batch batch;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto dim = batch_dims_.find(fields[f].name);
    const bool moves = dim != batch_dims_.end() && dim->second != 0;
    batch.set(fields[f].name, moves ? tensors[f].movedim(0, dim->second).contiguous() : tensors[f]);
  }
  return batch;
}

Batch BatchReader::read(data::IndexRange range) const {
  std::vector<data::Sample> samples;
  for (std::int64_t i = range.begin; i < range.end; ++i) samples.push_back({i});
  return read(samples);
}

record::BatchMaker BatchReader::maker() const {
  return [reader = *this](std::int64_t size, std::uint64_t seed) {
    const data::SampleOrder order(reader.source_->num_samples(), seed);
    std::vector<data::Sample> samples;
    for (std::int64_t i = 0; i < size; ++i) samples.push_back({order.sample_at(i)});
    return reader.read(samples);
  };
}

StepReader::StepReader(const Workload& workload, const BatchLayout& batch, std::uint64_t seed,
                       data::OrderKind order)
    : workload_(workload),
      batch_(batch),
      reader_(workload.training, workload.model),
      order_(workload.training->num_samples(), seed, order) {}

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
