#include "trireme/engine/train/first_step_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/engine/reference/plain_loop.h"
#include "trireme/engine/reference/rounding.h"
#include "trireme/engine/reference/run_record.h"
#include "trireme/engine/reference/serial_executor.h"
#include "trireme/engine/train/batch_reader.h"
#include "trireme/engine/train/planned_recording.h"
#include "trireme/error.h"
#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan.h"
#include "trireme/plan/layout/plan_check.h"

namespace trireme::train {
namespace {

using reference::gradients_of;
using reference::relative_difference;
using reference::Rounding;
using reference::rounding_of;
using reference::same_bits;

/// What a step leaves behind.
struct Outcome {
  StepLosses losses;
  reference::Tensors gradients;
  reference::Tensors buffers;
};

reference::Tensors copies_of(const std::vector<NamedTensor>& buffers) {
  reference::Tensors result;
  for (const auto& [name, tensor] : buffers) {
    if (tensor.defined()) result[name] = tensor.clone();
  }
  return result;
}

/// The same small step, by whoever runs it.
class SmallStep {
 public:
  SmallStep(const Workload& workload, const record::Recording& recorded, const layout::Plan& plan,
            const FirstStepOptions& options)
      : workload_(workload),
        recorded_(recorded),
        plan_(plan),
        seed_(options.seed),
        scratch_(options.scratch) {
    layout::checked_graph(recorded.graph, plan);
    const std::int64_t largest = record::kRecordedBatches[0];
    const std::int64_t alone = recorded.graph.microbatch;
    const std::int64_t size = alone > 0 ? alone : std::min(plan.batch.microbatch, largest);
    // One at each length that samples are padded to.
    const std::int64_t num =
        std::max(options.num_microbatches, std::ssize(recorded.graph.shorter) + std::int64_t{1});
    plan_.batch = {.global_batch = num * size, .microbatch = size, .lanes = 1};
    plan_.prediction.reset();
    layout::set_replicas(plan_, 1);
  }

  const layout::Plan& plan() const { return plan_; }

  layout::Plan uncut() const {
    layout::Plan plan = layout::make_manual_plan(layout::planned_graph(recorded_.graph, plan_),
                                                 plan_.graph_sha256, {}, plan_.batch);
    plan.copied_nodes = plan_.copied_nodes;
    return plan;
  }

  Outcome plain(std::int64_t step) const {
    const Model& model = workload_.model;
    const record::StateGuard restore(model, &recorded_.graph);
    Outcome result;
    result.losses = reference::PlainLoop(model, seed_).run_step(step, microbatches(step));
    std::map<std::string, at::Tensor> by_name;
    for (const auto& [name, tensor] : model.parameters) by_name[name] = tensor;
    for (const graph::Parameter& parameter : recorded_.graph.parameters) {
      const at::Tensor& gradient = by_name.at(parameter.name).grad();
      if (gradient.defined()) result.gradients[parameter.name] = gradient.to_dense();
    }
    result.buffers = copies_of(model.buffers);
    return result;
  }

  /// By the serial executor under `plan`.
  Outcome replay(const layout::Plan& plan, std::int64_t step) const {
    const record::StateGuard restore(workload_.model, &recorded_.graph);
    const record::Recording recording = planned_recording(recorded_, plan);
    const parameters::ParameterStore store(layout::make_parameter_map(recording.graph, plan),
                                           recording.graph, recording.tensors, {});
    reference::SerialExecutor executor(recording, plan, store, seed_, {.scratch = scratch_});
    Outcome result;
    result.losses = executor.run_step(step, microbatches(step));
    const parameters::LaneAccumulator& sums = executor.gradients();
    result.gradients = gradients_of(
        store, sums.gradients(), [&](const std::string& name) { return sums.has_gradient(name); });
    result.buffers = copies_of(workload_.model.buffers);
    return result;
  }

 private:
  /// Read anew each time: a model may write to its batch.
  std::vector<Batch> microbatches(std::int64_t step) const {
    const StepReader reader(workload_, plan_.batch, seed_);
    std::vector<Batch> result;
    const auto padded = reader.makers();
    for (std::int64_t m = 0; m < plan_.batch.num_microbatches(); ++m) {
      if (padded.size() < 2) {
        result.push_back(reader.read(step, m));
        continue;
      }
      const auto seed = static_cast<std::uint64_t>(step) + seed_;
      result.push_back(padded[m % std::ssize(padded)].make(plan_.batch.microbatch, seed));
      set_step_scalars(result.back(), workload_.model, step);
    }
    return result;
  }

  const Workload& workload_;
  const record::Recording& recorded_;
  layout::Plan plan_;
  std::uint64_t seed_;
  std::filesystem::path scratch_;
};

bool same_number(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

/// Root mean square of the gradient that has the largest.
double scale_of(const reference::Tensors& gradients) {
  double scale = 0;
  for (const auto& [name, tensor] : gradients) {
    if (tensor.numel() == 0) continue;
    const auto elements = static_cast<double>(tensor.numel());
    scale = std::max(scale, tensor.norm().item<double>() / std::sqrt(elements));
  }
  return scale;
}

/// Sums that cancel leave nothing but rounding, of the size of what was added.
bool is_rounding(const at::Tensor& a, const at::Tensor& b, double scale, double limit) {
  if (a.sizes() != b.sizes()) return false;
  const double difference = a.to(at::kDouble).sub(b.to(at::kDouble)).norm().item<double>();
  const double norm = b.norm().item<double>();
  const double floor = scale * std::sqrt(static_cast<double>(b.numel()));
  return difference <= limit * (norm + floor);
}

std::string gradient_difference(const Outcome& run, const Outcome& reference,
                                const Rounding& rounding) {
  const double scale = scale_of(reference.gradients);
  for (const auto& [name, tensor] : reference.gradients) {
    const std::string what = "the gradient of '" + name + "'";
    const auto mine = run.gradients.find(name);
    if (mine == run.gradients.end()) return what + " is missing";
    if (same_bits(mine->second, tensor)) continue;
    if (rounding.allows(name) && is_rounding(mine->second, tensor, scale, rounding.limit)) continue;
    return fmt::format("{} differs, by {:.1e} of its norm", what,
                       relative_difference(mine->second, tensor));
  }
  for (const auto& [name, tensor] : run.gradients) {
    if (!reference.gradients.contains(name)) return "'" + name + "' should have no gradient";
  }
  return "";
}

/// The first thing that differs, in the order in which a step makes them; empty if nothing does.
std::string difference(const Outcome& run, const Outcome& reference, const Rounding& rounding) {
  for (std::size_t i = 0; i < reference.losses.losses.size(); ++i) {
    const LossTotal& a = run.losses.losses.at(i);
    const LossTotal& b = reference.losses.losses[i];
    if (same_number(a.sum, b.sum) && same_number(a.weight, b.weight)) continue;
    return fmt::format("loss '{}' is {} and not {}", b.name, a.mean(), b.mean());
  }
  for (const auto& [name, tensor] : reference.buffers) {
    if (!same_bits(run.buffers.at(name), tensor)) return "buffer '" + name + "' differs";
  }
  return gradient_difference(run, reference, rounding);
}

bool is_finite(const Outcome& outcome) {
  return std::isfinite(outcome.losses.total()) &&
         std::all_of(outcome.gradients.begin(), outcome.gradients.end(), [](const auto& gradient) {
           return std::isfinite(gradient.second.norm().template item<double>());
         });
}

[[noreturn]] void fail(const SmallStep& step, const std::string& what, bool cut_is_to_blame) {
  const std::string against = cut_is_to_blame ? "the uncut graph" : "the model";
  throw Error(
      ErrorKind::kInvalidArgument,
      "before the first step, " + std::to_string(step.plan().batch.num_microbatches()) +
          " microbatches of " + std::to_string(step.plan().batch.microbatch) +
          " samples were run by " + against + " and by the stages of the plan: " + what + ". " +
          (cut_is_to_blame ? "The cuts are to blame: cut elsewhere"
                           : "The recording is not what the model does: mark the code that changes "
                             "from call to call, or that it has lost, with trireme::opaque") +
          "; --no-first-step-check trains what the plan does");
}

std::int64_t bytes_needed(const graph::Graph& graph) {
  std::int64_t bytes = 0;
  for (const graph::Parameter& parameter : graph.parameters) {
    bytes += graph::bytes_at(graph.values[parameter.value], 0);
  }
  return 4 * bytes;  // gradients of the plain model, the replay's and their copies, weights
}

void compare_replay(const SmallStep& small, const Outcome& plain, std::int64_t step,
                    const Rounding& rounding, const std::function<void()>& after_run) {
  const Outcome run = small.replay(small.plan(), step);
  after_run();
  const std::string what = difference(run, plain, rounding);
  const bool is_cut = small.plan().stages.size() > 1;
  if (is_cut && (!what.empty() || !rounding.is_none())) {
    const Outcome uncut = small.replay(small.uncut(), step);
    after_run();
    const std::string by_cut = difference(run, uncut, {});
    if (!by_cut.empty()) fail(small, by_cut, /*cut_is_to_blame=*/true);
  }
  if (!what.empty()) fail(small, what, /*cut_is_to_blame=*/false);
}

}  // namespace

bool check_first_step(const Workload& workload, const record::Recording& recorded,
                      const layout::Plan& plan, const FirstStepOptions& options,
                      const Logger& logger) {
  const auto skip = [&](const std::string& why) {
    logger.info("the first step is not compared with the plain model: " + why);
    return false;
  };
  if (workload.model.fill) return skip("the initialisation of its parameters is deferred");
  const std::int64_t bytes = bytes_needed(recorded.graph);
  if (bytes > options.available_bytes) {
    return skip("that takes " + std::to_string(bytes >> 20) + " MiB, more than there is here");
  }
  const memory::PeakPause pause;
  const SmallStep small(workload, recorded, plan, options);
  constexpr std::int64_t kTries = 4;  // of samples whose losses all weigh something
  for (std::int64_t step = 0; step < kTries; ++step) {
    const Outcome plain = small.plain(step);
    options.after_run();
    const auto& losses = plain.losses.losses;
    if (std::any_of(losses.begin(), losses.end(),
                    [](const LossTotal& loss) { return loss.weight == 0; })) {
      continue;
    }
    if (!is_finite(plain)) return skip("its loss or a gradient is not finite");
    compare_replay(small, plain, step, rounding_of(recorded.graph, plan), options.after_run);
    return true;
  }
  return skip("a loss has no weight in the first samples");
}

}  // namespace trireme::train
