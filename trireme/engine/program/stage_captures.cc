#include "trireme/engine/program/stage_captures.h"

#include <algorithm>
#include <utility>

#include "trireme/engine/program/capture_rules.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/error.h"
#include "trireme/plan/graph/lengths.h"

namespace trireme::program {
namespace {

/// Sizes that are captured; more would keep what few microbatches use.
constexpr std::size_t kMostSizes = 16;

/// Why the nodes cannot be captured; empty where they can.
std::string why_never(const graph::Graph& graph, const NodeProgram& nodes) {
  for (int position = 0; position < nodes.num_nodes(); ++position) {
    const graph::Node& node = *nodes.node_at(position);
    const std::string reason = why_not_captured(graph, node);
    if (!reason.empty()) return record::name_of(node) + ": " + reason;
  }
  return "";
}

/// Where a backward of a captured stage begins.
struct Seeds {
  std::vector<graph::ValueId> values;
  std::vector<at::Tensor> gradients;
};

Seeds seeds_of(const CapturedStage& stage, const ValueMap& gradients) {
  Seeds seeds;
  for (const auto& [value, gradient] : gradients) {
    if (!gradient.defined() || std::ranges::count(stage.roots, value) == 0) continue;
    seeds.values.push_back(value);
    seeds.gradients.push_back(gradient);
  }
  return seeds;
}

}  // namespace

StageCaptures::StageCaptures(const record::Recording& recording, const NodeProgram& nodes,
                             std::vector<graph::ValueId> leaves)
    : context_{recording, nodes, std::move(leaves)}, never_(why_never(recording.graph, nodes)) {}

std::shared_ptr<CapturedStage> StageCaptures::find(const graph::BatchSize& size,
                                                   const CaptureInput& input) {
  if (!never_.empty()) return nullptr;
  CaptureKey key{.size = {size.samples, size.shorter}, .sizes = {}};
  for (const at::Tensor& tensor : input.tensors) {
    if (!tensor.defined()) return nullptr;
    key.sizes.insert(key.sizes.end(), tensor.sizes().begin(), tensor.sizes().end());
  }
  const std::lock_guard lock(mutex_);
  const auto known = stages_.find(key);
  if (known != stages_.end()) return known->second;
  if (stages_.size() >= kMostSizes) return nullptr;
  return stages_.emplace(std::move(key), std::make_shared<CapturedStage>()).first->second;
}

std::vector<at::Tensor> StageCaptures::forward(CapturedRun& run, CaptureInput input,
                                               const graph::BatchSize& size) const {
  const auto seeded = [&](int position, const std::function<void()>& part) {
    run_seeded(context_.nodes, position, input.stream, part);
  };
  try {
    return run.stage->replayer->forward(std::move(input.tensors), run.run, seeded);
  } catch (const capture::FailedCall& failed) {
    const graph::Node* node = context_.nodes.node_at(failed.origin);
    if (node == nullptr) std::rethrow_exception(failed.cause);
    try {
      std::rethrow_exception(failed.cause);
    } catch (const std::exception& cause) {
      throw node_failure("replaying", graph::at_lengths(context_.recording.graph, size), *node,
                         size.samples, cause);
    }
  }
}

bool StageCaptures::holds_for(const CapturedRun& run, const ValueMap& seeds) {
  const Seeds given = seeds_of(*run.stage, seeds);
  if (given.values.empty()) return true;
  return given.values == run.stage->seeds &&
         run.stage->replayer->takes(capture::Phase::kBackward, given.gradients);
}

ValueMap StageCaptures::backward(CapturedRun& run, const ValueMap& seeds,
                                 const capture::Replayer::Sites& sites) const {
  const CapturedStage& stage = *run.stage;
  Seeds given = seeds_of(stage, seeds);
  if (given.values.empty()) return {};
  const std::vector<at::Tensor> made =
      stage.replayer->backward(std::move(given.gradients), run.run, sites);
  run.has_weights = stage.has_two_parts;
  ValueMap result;
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i].defined()) result[context_.leaves[i]] = made[i];
  }
  return result;
}

void StageCaptures::capture_in_two_parts(const std::shared_ptr<CapturedStage>& stage) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, known] : stages_) {
    if (known != stage) continue;
    known = std::make_shared<CapturedStage>();
    known->wants_two_parts = true;
  }
}

void StageCaptures::weights(CapturedRun& run, const capture::Replayer::Sites& sites) {
  if (std::exchange(run.has_weights, false)) run.stage->replayer->weights(run.run, sites);
}

CaptureReport StageCaptures::report() const {
  CaptureReport report;
  if (!never_.empty()) report.refusals.push_back(never_);
  const std::lock_guard lock(mutex_);
  for (const auto& [key, stage] : stages_) {
    if (stage->state == CapturedStage::State::kTrusted) ++report.num_replayed;
    if (stage->state == CapturedStage::State::kRefused) report.refusals.push_back(stage->reason);
  }
  return report;
}

}  // namespace trireme::program
