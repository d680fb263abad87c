#include <cstdio>

#include "trireme/base/files.h"
#include "trireme/command/run_session.h"
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

record::Recording record_model(const Context& context, const Workload& workload, graph::Mode mode,
                               std::int64_t microbatch) {
  const train::BatchReader reader(workload.training, workload.model);
  record::Recording recording =
      record::record(workload.model, reader.maker(),
                     {.mode = mode, .microbatch = microbatch, .sizes = context.sizes});
  const bool is_first = !context.environment.ranks || context.environment.ranks->rank == 0;
  if (!recording.why_exact.empty() && is_first) {
    std::fprintf(stderr,
                 "trireme: recorded for microbatches of %lld samples alone (%s), since at other "
                 "batch sizes the model's code differs: %s\n",
                 static_cast<long long>(microbatch),
                 mode == graph::Mode::kTrain ? "training" : "evaluation",
                 recording.why_exact.c_str());
  }
  return recording;
}

Training::Training(const Context& context, std::int64_t microbatch)
    : workload(train::construct(context.workload(), context.seed)),
      data_bytes(memory::memory_use().live_bytes - model_bytes(workload.model)),
      recorded(record_model(context, workload, graph::Mode::kTrain, microbatch)) {}

bool TrainOptions::plans_itself(int world_size) const {
  if (!plan.file.empty() || !plan.cuts.empty()) return false;
  if (!run.folder.empty()) return true;
  const std::int64_t by_hand = plan.num_ranks_by_hand();
  return plan.copies.empty() && by_hand < world_size && world_size % by_hand == 0;
}

void check_before_start(const TrainOptions& options, const Context& context) {
  context.workload();
  options.plan.check();
  const bool is_by_hand = options.plan.file.empty() && !options.plans_itself(options.plan.ranks);
  const std::int64_t by_hand = options.plan.num_ranks_by_hand();
  if (is_by_hand && options.plan.ranks != 0 && options.plan.ranks != by_hand) {
    refuse_ranks(by_hand, options.plan.ranks);
  }
  train::make_optimizer(options.session.optimizer);
  check_outputs(options);
  if (!options.run.folder.empty()) check_run_folder(options);
}

void check_outputs(const TrainOptions& options) {
  for (const std::string& path : {options.save, options.timeline}) {
    if (!path.empty()) check_writable(path);
  }
}

}  // namespace trireme::command
