#include "trireme/session/training.h"

#include <cstdio>
#include <utility>

#include "trireme/base/environment.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/construct_workload.h"

namespace trireme::session {
namespace {

/// Of parameters and buffers.
///
/// counted   of those alone that are live tensors: not of what waits to be initialised.
std::int64_t bytes_of(const Model& model, bool counted = false) {
  std::int64_t bytes = 0;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (!tensor.defined()) continue;
      if (counted && !memory::is_counted(tensor.storage().data_ptr())) continue;
      bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

}  // namespace

record::Recording record_model(const Workload& workload, graph::Mode mode, std::int64_t microbatch,
                               BatchSizes sizes, bool says) {
  return record_model(workload.model, workload.training, mode, microbatch, sizes, says);
}

record::Recording record_model(const Model& model, std::shared_ptr<const data::Source> samples,
                               graph::Mode mode, std::int64_t microbatch, BatchSizes sizes,
                               bool says) {
  const train::BatchReader reader(std::move(samples), model);
  record::Recording recording = record::record(
      model, reader.maker(), {.mode = mode, .microbatch = microbatch, .sizes = sizes});
  if (!recording.why_exact.empty() && says) {
    std::fprintf(stderr,
                 "trireme: recorded for microbatches of %lld samples alone (%s), since at other "
                 "batch sizes the model's code differs: %s\n",
                 static_cast<long long>(microbatch),
                 mode == graph::Mode::kTrain ? "training" : "evaluation",
                 recording.why_exact.c_str());
  }
  if (!recording.why_traced.empty() && says) {
    std::fprintf(
        stderr,
        "trireme: recorded as torch.compile does it (%s), since by itself the model asks its "
        "data which way to go: %s\n",
        mode == graph::Mode::kTrain ? "training" : "evaluation", recording.why_traced.c_str());
  }
  return recording;
}

Training::Training(const MakeWorkload& make, std::uint64_t seed, std::int64_t microbatch,
                   BatchSizes sizes, bool defers, bool says)
    : workload(train::construct(make, seed, defers)),
      model_bytes(bytes_of(workload.model)),
      data_bytes(memory::memory_use().live_bytes - bytes_of(workload.model, /*counted=*/true)),
      recorded(record_model(workload, graph::Mode::kTrain, microbatch, sizes, says)) {}

}  // namespace trireme::session

namespace trireme {

Graph record_graph(const MakeWorkload& make, std::int64_t microbatch, bool training,
                   std::uint64_t seed, BatchSizes sizes) {
  memory::apply_torch_settings();
  const Workload workload = train::construct(make, seed);
  const auto mode = training ? graph::Mode::kTrain : graph::Mode::kEval;
  const auto ranks = read_environment().ranks;
  const bool says = !ranks || ranks->rank == 0;
  record::Recording recording = session::record_model(workload, mode, microbatch, sizes, says);
  return Graph(std::make_shared<const graph::Graph>(std::move(recording.graph)));
}

}  // namespace trireme
