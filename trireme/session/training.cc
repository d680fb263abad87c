#include "trireme/session/training.h"

#include <cstddef>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/environment.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/telling_others.h"
#include "trireme/plan/graph/graph_json.h"

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

/// before_forward   called before each.
record::Recording record_here(const RecordRequest& request, bool says,
                              const std::function<void()>& before_forward) {
  const train::BatchReader reader(request.samples, request.model);
  const auto [mode, microbatch] = std::pair(request.mode, request.microbatch);
  std::vector<record::PaddedBatches> batches = reader.makers();
  for (record::PaddedBatches& padded : batches) {
    padded.make = [&, make = padded.make](std::int64_t size, std::uint64_t seed) {
      before_forward();
      return make(size, seed);
    };
  }
  record::Recording recording = record::record(
      request.model, batches, {.mode = mode, .microbatch = microbatch, .sizes = request.sizes});
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

// What the first rank says while it records; else the graph's document.
constexpr const char* kNotYet = "";
constexpr const char* kEachByItself = "-";

std::string tell(const collectives::World& world, const std::string& text) {
  return collectives::from_first(world, text, "recording");
}

record::Recording record_for_others(const RecordRequest& request, const collectives::World& world) {
  record::Recording recording;
  train::telling_others(world, 0, [&] {
    recording = record_here(request, /*says=*/true, [&] { tell(world, kNotYet); });
  });
  if (request.model.recorded_by_all || !record::may_be_bound(recording)) {
    tell(world, kEachByItself);
    return recording;
  }
  tell(world, to_document_text(graph::kGraphDocument, graph::to_json(recording.graph)));
  const std::vector<std::byte> constants = graph::constants_file(recording.graph);
  tell(world, {reinterpret_cast<const char*>(constants.data()), constants.size()});
  return recording;
}

record::Recording take_recording(const RecordRequest& request, const collectives::World& world) {
  std::string text = tell(world, "");
  while (text == kNotYet) text = tell(world, "");
  if (text == kEachByItself) return record_here(request, /*says=*/false, [] {});
  const std::string constants = tell(world, "");
  return record::bind(
      graph::graph_from_json(parse_document(graph::kGraphDocument, text, "rank 0's recording"),
                             std::as_bytes(std::span(constants))),
      request.model);
}

}  // namespace

record::Recording record_model(const RecordRequest& request, bool says) {
  return record_here(request, says, [] {});
}

record::Recording record_model(const RecordRequest& request, const collectives::World& world) {
  if (world.size() == 1) return record_model(request, /*says=*/true);
  return world.rank() == 0 ? record_for_others(request, world) : take_recording(request, world);
}

Training::Training(const MakeWorkload& make, std::uint64_t seed, std::int64_t microbatch,
                   BatchSizes sizes, bool defers, const collectives::World& world)
    : workload(train::construct(make, seed, defers)),
      model_bytes(bytes_of(workload.model)),
      data_bytes(memory::memory_use().live_bytes - bytes_of(workload.model, /*counted=*/true)),
      recorded(record_model(
          {workload.model, workload.training, graph::Mode::kTrain, microbatch, sizes}, world)) {}

bool fits_first(const Training& training, const collectives::World& world) {
  const bool fits = training.model_bytes < memory::available_bytes() / 2;
  if (world.rank() == 0 && !fits) {
    world.watch.logger.info("no examples: the whole model does not fit here");
  }
  return collectives::from_first(world, fits ? "yes" : "", "examples") == "yes";
}

}  // namespace trireme::session

namespace trireme {

Graph record_graph(const MakeWorkload& make, std::int64_t microbatch, bool training,
                   std::uint64_t seed, BatchSizes sizes) {
  memory::apply_torch_settings();
  const Workload workload = train::construct(make, seed);
  const auto mode = training ? graph::Mode::kTrain : graph::Mode::kEval;
  const auto ranks = read_environment().ranks;
  const bool says = !ranks || ranks->rank == 0;
  record::Recording recording =
      session::record_model({workload.model, workload.training, mode, microbatch, sizes}, says);
  return Graph(std::make_shared<const graph::Graph>(std::move(recording.graph)));
}

}  // namespace trireme
