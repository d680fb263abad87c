#include "trireme/base/files.h"
#include "trireme/command/train.h"
#include "trireme/engine/memory/block_allocator.h"
#include "trireme/engine/train/construct.h"

namespace trireme::command {
namespace {

std::int64_t model_bytes(const Model& model) {
  std::int64_t bytes = 0;
  for (const auto* list : {&model.parameters, &model.buffers}) {
    for (const auto& [name, tensor] : *list) {
      if (tensor.defined()) bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
  }
  return bytes;
}

}  // namespace

Training::Training(const Context& context)
    : workload(train::construct(context.workload(), context.seed)),
      data_bytes(memory::memory_use().live_bytes - model_bytes(workload.model)),
      recorded(record(graph::Mode::kTrain)) {}

record::Recording Training::record(graph::Mode mode) const {
  const train::BatchReader reader(workload.training, workload.model);
  return record::record(workload.model, reader.maker(), mode);
}

void check_outputs(const TrainOptions& options) {
  for (const std::string& path : {options.save, options.timeline}) {
    if (!path.empty()) check_writable(path);
  }
}

}  // namespace trireme::command
