#include "trireme/engine/program/stage_regions.h"

#include <algorithm>
#include <utility>

#include "trireme/engine/program/boundary_copy.h"
#include "trireme/plan/layout/regions.h"

namespace trireme::program {
namespace {

std::vector<at::Tensor*> tensors_of(RegionRuns& runs) {
  std::vector<at::Tensor*> all;
  for (auto& [value, tensor] : runs.kept) all.push_back(&tensor);
  for (auto& [field, tensor] : runs.fields) all.push_back(&tensor);
  return all;
}

bool share_memory(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.layout() == at::kStrided && b.layout() == at::kStrided &&
         a.is_alias_of(b);
}

/// Gradients of several values may be one tensor: of a sum's operands.
void add_alone(ValueMap made, ValueMap& gradients) {
  for (auto& [value, gradient] : made) {
    const bool is_shared = std::ranges::any_of(
        gradients, [&](const auto& known) { return share_memory(known.second, gradient); });
    gradients[value] = is_shared ? copy_across(gradient) : std::move(gradient);
  }
}

}  // namespace

StageRegions::StageRegions(const record::Recording& recording, const layout::Plan& plan, int stage,
                           const SiteTable& sites, Capture capture)
    : model_(model_storages(recording)) {
  const layout::RegionPlan split = layout::regions_as_stages(recording.graph, plan);
  const auto capture_of_regions = plan.stages[stage].offload ? Capture::kOff : capture;
  std::set<graph::ValueId> received;
  for (int r = split.begin(stage); r < split.end(stage); ++r) {
    Region region{{recording, split.plan, r, sites, capture_of_regions}, {}, {}};
    for (const layout::Crossing& crossing : region.program.receives()) {
      region.seeded.insert(crossing.value);
      if (received.insert(crossing.value).second) region.last_of.insert(crossing.value);
    }
    for (const layout::Crossing& crossing : region.program.sends()) {
      region.seeded.insert(crossing.value);
      if (crossing.stages[1] < split.end(stage)) inner_.insert(crossing.value);
      if (crossing.stages.back() >= split.end(stage)) ends_.insert(crossing.value);
    }
    for (const int loss : region.program.losses()) {
      region.seeded.insert(recording.graph.losses[loss].value);
      ends_.insert(recording.graph.losses[loss].value);
    }
    for (const std::string& field : region.program.fields()) {
      if (std::ranges::count(fields_, field) == 0) fields_.push_back(field);
    }
    regions_.push_back(std::move(region));
  }
}

/// The value without its gradient, in memory that holds nothing else and is not the model's, which may be gone until
/// then; captures take no two inputs in one memory.
at::Tensor StageRegions::alone(const at::Tensor& value, RegionRuns& runs) const {
  if (value.layout() != at::kStrided) return copy_across(value);
  const bool is_whole = value.storage_offset() == 0 &&
                        span_elements(value) * value.itemsize() == value.storage().nbytes();
  const bool is_shared = model_.contains(value.storage().unsafeGetStorageImpl()) ||
                         std::ranges::any_of(tensors_of(runs), [&](const at::Tensor* kept) {
                           return share_memory(*kept, value);
                         });
  return is_whole && !is_shared ? value.detach() : copy_across(value);
}

ValueMap StageRegions::received_by(const Region& region, ValueMap& kept, bool is_backward) const {
  ValueMap received;
  for (const layout::Crossing& crossing : region.program.receives()) {
    at::Tensor& tensor = kept.at(crossing.value);
    const bool is_last = is_backward && region.last_of.contains(crossing.value);
    received[crossing.value] = is_last ? std::move(tensor) : tensor;
  }
  return received;
}

ValueMap StageRegions::forward(StageRun& run, const MicrobatchInput& input,
                               ValueMap received) const {
  run.regions = std::make_unique<RegionRuns>();
  run.regions->kept = std::move(received);
  run.regions->stream = input.stream;
  for (const std::string& field : fields_) run.regions->fields[field] = input.batch[field];
  ValueMap made;
  for (const Region& region : regions_) {
    ValueMap& kept = run.regions->kept;
    StageRun first = region.program.forward(input, received_by(region, kept, false));
    std::ranges::move(first.slots.statistics, std::back_inserter(run.slots.statistics));
    for (const graph::ValueId value : region.seeded) {
      if (inner_.contains(value) && !kept.contains(value)) {
        kept[value] = alone(region.program.value(first, value), *run.regions);
      }
      if (ends_.contains(value) && !made.contains(value)) {
        made[value] = region.program.value(first, value).detach();
      }
    }
  }
  return made;
}

StageRun StageRegions::run_again(std::size_t index, const StageRun& run) const {
  RegionRuns& runs = *run.regions;
  Batch batch;
  for (auto& [field, tensor] : runs.fields)
    batch.set(field, index == 0 ? std::move(tensor) : tensor);
  const Region& region = regions_[index];
  return region.program.forward({batch, run.size, runs.stream},
                                received_by(region, runs.kept, true));
}

/// Gradients of what crosses regions wait for the region before, which makes the value or takes it too.
ValueMap StageRegions::in_reverse(StageRun& run, const ValueMap& seeds,
                                  const Backward& work) const {
  ValueMap gradients = seeds;
  for (std::size_t r = regions_.size(); r-- > 0;) {
    ValueMap own;
    for (const graph::ValueId value : regions_[r].seeded) {
      if (auto gradient = gradients.extract(value)) own.insert(std::move(gradient));
    }
    add_alone(work(regions_[r].program, run_again(r, run), own), gradients);
  }
  return gradients;
}

ValueMap StageRegions::backward(StageRun& run, const ValueMap& seeds) const {
  return in_reverse(run, seeds,
                    [](const StageProgram& region, StageRun again, const ValueMap& own) {
                      return region.backward(std::move(again), own);
                    });
}

ValueMap StageRegions::backward_inputs(StageRun& run, const ValueMap& seeds) const {
  return in_reverse(run, seeds,
                    [&](const StageProgram& region, StageRun again, const ValueMap& own) {
                      ValueMap gradients = region.backward_inputs(again, own);
                      run.regions->waiting.push_back(std::move(again));
                      return gradients;
                    });
}

void StageRegions::backward_weights(RegionRuns& runs) const {
  for (std::size_t i = 0; i < runs.waiting.size(); ++i) {
    regions_[regions_.size() - 1 - i].program.backward_weights(std::move(runs.waiting[i]));
  }
}

void StageRegions::offload(RegionRuns& runs, const std::filesystem::path& folder) {
  runs.file = std::make_unique<OffloadedTensors>(folder, tensors_of(runs));
}

void StageRegions::fetch(RegionRuns& runs) {
  runs.file->read(tensors_of(runs));
  runs.file.reset();
}

CaptureReport StageRegions::capture_report() const {
  CaptureReport all;
  for (const Region& region : regions_) {
    CaptureReport report = region.program.capture_report();
    all.num_replayed += report.num_replayed;
    std::ranges::move(report.refusals, std::back_inserter(all.refusals));
  }
  return all;
}

}  // namespace trireme::program
