#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/models/models.h"
#include "trireme/engine/parameters/parameter_store.h"
#include "trireme/engine/reference/run_record.h"
#include "trireme/engine/reference/serial_executor.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::reference {

/// What a step leaves behind, in a form that is compared bit by bit.
struct StepRecord {
  double loss = 0;
  std::map<std::string, at::Tensor> gradients;
  std::map<std::string, at::Tensor> buffers;
};

/// A test model under the serial executor.
class Trial {
 public:
  Trial(const std::string& model_name, const BatchLayout& batch)
      : Trial(models::make(model_name), batch) {}

  Trial(models::TestModel model, const BatchLayout& batch)
      : test(std::move(model)),
        recording(record::record(test.model, test.make_batch, {.microbatch = batch.microbatch})),
        graph_sha256(graph::graph_sha256(recording.graph)),
        batch_(batch) {
    plan = layout::make_manual_plan(recording.graph, graph_sha256, {}, batch);
    for (const NamedTensor& buffer : test.model.buffers) {
      initial_buffers_.push_back(buffer.tensor.clone());
    }
    map_to(plan);
  }

  /// The step's microbatches, the same at each call.
  std::vector<Batch> microbatches(std::int64_t step) const {
    std::vector<Batch> result;
    for (std::int64_t m = 0; m < batch_.num_microbatches(); ++m) {
      const auto seed = static_cast<std::uint64_t>(1000 + step * 100 + m);
      result.push_back(test.make_batch(batch_.microbatch, seed));
    }
    return result;
  }

  /// One step from the initial weights and buffers, cut at `cuts`.
  StepRecord run_cut(const std::vector<int>& cuts) {
    return run_plan(layout::make_manual_plan(recording.graph, graph_sha256, cuts, batch_));
  }

  /// The same of stages that recompute, in regions that begin at `regions`; nothing where one of them cannot.
  std::optional<StepRecord> run_regions(const std::vector<int>& cuts,
                                        const std::vector<int>& regions) {
    layout::Plan divided = layout::make_manual_plan(recording.graph, graph_sha256, cuts, batch_);
    for (int s = 0; s < static_cast<int>(divided.stages.size()); ++s) {
      if (!layout::why_not_recomputed(recording.graph, divided, s).empty()) return std::nullopt;
      layout::Stage& stage = divided.stages[s];
      stage.recompute = true;
      for (const int begin : regions) {
        if (begin > stage.begin && begin < stage.end) stage.regions.push_back(begin);
      }
    }
    return run_plan(divided);
  }

  StepRecord run_plan(const layout::Plan& to_run) {
    plan = to_run;
    map_to(plan);
    restore_buffers();
    SerialExecutor executor(recording, plan, *store, kSeed);
    StepRecord result;
    result.loss = executor.run_step(0, microbatches(0)).total();
    for (const std::string& name : store->names()) {
      result.gradients[name] = gradient(executor, name).clone();
    }
    for (const NamedTensor& buffer : test.model.buffers) {
      result.buffers[buffer.name] = buffer.tensor.clone();
    }
    return result;
  }

  void restore_buffers() {
    for (std::size_t i = 0; i < initial_buffers_.size(); ++i) {
      test.model.buffers[i].tensor.copy_(initial_buffers_[i]);
    }
  }

  at::Tensor gradient(const SerialExecutor& executor, const std::string& name) const {
    const auto place = store->owner(name);
    return parameters::slot_view(executor.gradients().gradients().flat(place.bucket),
                                 store->slot(place), store->value(name));
  }

  void map_to(const layout::Plan& plan) {
    store = std::make_unique<parameters::ParameterStore>(
        layout::make_parameter_map(recording.graph, plan), recording.graph, recording.tensors,
        parameters::ParameterStore::Options{});
  }

  static constexpr std::uint64_t kSeed = 7;

  models::TestModel test;
  record::Recording recording;
  std::string graph_sha256;
  layout::Plan plan;
  std::unique_ptr<parameters::ParameterStore> store;

 private:
  BatchLayout batch_;
  std::vector<at::Tensor> initial_buffers_;
};

/// The first thing that differs; empty if nothing does.
inline std::string difference(const StepRecord& a, const StepRecord& b) {
  if (std::memcmp(&a.loss, &b.loss, sizeof a.loss) != 0) return "loss";
  for (const auto& [name, gradient] : a.gradients) {
    if (!same_bits(gradient, b.gradients.at(name))) return "gradient of " + name;
  }
  for (const auto& [name, buffer] : a.buffers) {
    if (!same_bits(buffer, b.buffers.at(name))) return "buffer " + name;
  }
  return "";
}

}  // namespace trireme::reference
