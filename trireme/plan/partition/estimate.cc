#include "trireme/plan/partition/estimate.h"

#include <algorithm>

#include "trireme/plan/graph/graph_queries.h"
#include "trireme/plan/schedule/schedules.h"
#include "trireme/plan/simulate/crowded_cores.h"
#include "trireme/plan/simulate/stage_cost.h"

// Cuts -> stages, each a range of nodes that is known or worked out; what they copy instead of
// receiving; what they send each other; what that takes. Each step here has its twin in
// plan/simulate and plan/schedule, which say the same of a whole plan (estimate_test.cc). Memory is in
// estimate_memory.cc.

namespace trireme::partition {

using graph::ValueId;
using schedule::ChannelKind, schedule::Message;

namespace {

/// Cores that too many ranks of a plan share.
std::vector<CrowdedCores> crowded_cores(const Problem& problem) {
  const int num_replicas = problem.options.replicas;
  std::map<int, std::pair<int, int>> places;  // Stage and replica by world rank.
  for (int s = 0; s < problem.num_stages; ++s) {
    for (int r = 0; r < num_replicas; ++r) places[problem.rank(s, r)] = {s, r};
  }
  std::vector<CrowdedCores> all;
  for (const topology::SharedCores& shared :
       simulate::crowded_cores(problem.topology, problem.num_positions() * num_replicas)) {
    CrowdedCores& cores = all.emplace_back();
    cores.num_at_full_speed = shared.num_at_full_speed;
    for (const int rank : shared.ranks) cores.ranks.push_back(places.at(rank));
  }
  return all;
}

}  // namespace

Estimator::Estimator(const Problem& problem, const Setting& setting)
    : problem_(problem),
      setting_(setting),
      graph_(setting.planned),
      rules_(range_rules(problem, setting)),
      ranges_(problem, setting, rules_),
      schedule_(make_schedule(problem, setting)),
      splits_(schedule::splits_backwards(schedule_)),
      clock_(problem.is_estimated() ? schedule_ : schedule::Schedule()),
      copies_(setting.planned, problem.profile),
      tensor_rules_(setting.planned, problem.profile, rules_.microbatch),
      last_consumer_(graph_.values.size(), -1) {
  if (!problem.is_estimated()) return;
  read_tensors();
  std::vector<CrowdedCores> crowded = crowded_cores(problem);
  if (!crowded.empty()) crowded_clock_.emplace(schedule_, std::move(crowded));
  const int p = problem.num_stages, num_replicas = problem.options.replicas;
  step_.has_norm = problem.options.forecast.program.has_norm;
  std::vector<int> world;
  for (int s = 0; s < p; ++s) {  // As they are placed.
    for (int r = 0; r < num_replicas; ++r) world.push_back(problem.rank(s, r));
  }
  step_.exchange_us = small_us(world);
  for (int r = 0; r < num_replicas; ++r) {
    std::vector<int> pipeline;
    for (int s = 0; s < p; ++s) pipeline.push_back(problem.rank(s, r));
    step_.pipeline_us.push_back(step_.has_norm ? small_us(pipeline) : 0);
  }
  for (int s = 0; s < p; ++s) {
    std::vector<int> data;
    for (int r = 0; r < num_replicas; ++r) data.push_back(problem.rank(s, r));
    data_groups_.push_back(simulate::sum_group(problem.topology, data));
    TimedStage stage;
    stage.small_us = small_us(data);
    for (const int rank : data) stage.slowness.push_back(1 / problem.topology.ranks[rank].speed);
    step_.stages.push_back(stage);
    for (int t = 0; t < p; ++t) {
      for (int r = 0; r < num_replicas; ++r) {
        kinds_.push_back(
            simulate::link_kind(problem.topology, problem.rank(s, r), problem.rank(t, r)));
      }
    }
  }
}

std::int64_t Estimator::num_actions() const {
  constexpr int kCrowded = 64;  // What an event costs more than an action of StepClock.
  const std::int64_t num_replicas = crowded_clock_ ? kCrowded * problem_.options.replicas : 1;
  return num_replicas * (splits_ ? 3 : 2) * schedule_.num_stages * schedule_.num_microbatches;
}

double Estimator::small_us(const std::vector<int>& ranks) const {
  return simulate::reduce_us(problem_.profile, simulate::sum_group(problem_.topology, ranks),
                             simulate::kSmallMessageBytes);
}

profile::LinkKind Estimator::kind(int from_stage, int to_stage, int replica) const {
  const int pair = from_stage * problem_.num_stages + to_stage;
  return kinds_[static_cast<std::size_t>(pair) * problem_.options.replicas + replica];
}

double Estimator::link_us(profile::LinkKind kind, std::int64_t bytes) {
  const auto [entry, is_new] = known_links_.try_emplace({kind, bytes});
  if (is_new) entry->second = profile::link_us(problem_.profile, kind, bytes, true);
  return entry->second;
}

int Estimator::stage_at(const Shape& shape, int position) {
  const auto next =
      std::upper_bound(shape.stages.begin(), shape.stages.end(), position,
                       [](int wanted, const Stage& stage) { return wanted < stage.end; });
  return static_cast<int>(next - shape.stages.begin());
}

Estimator::Shape Estimator::shape(const Cuts& cuts) {
  Shape shape;
  int begin = 0;
  for (std::size_t s = 0; s <= cuts.size(); ++s) {
    const int end = s == cuts.size() ? static_cast<int>(graph_.nodes.size()) : cuts[s];
    const StageRange& range = ranges_.at(begin, end);
    shape.stages.push_back({begin, end, &range, {}, range.received, {}});
    begin = end;
  }
  choose_copies(shape);
  add_values(shape);
  add_ties(shape);
  std::sort(shape.messages.begin(), shape.messages.end());
  return shape;
}

bool Estimator::makes(const Stage& stage, ValueId value) const {
  return std::binary_search(stage.copies.begin(), stage.copies.end(), ranges_.producer(value));
}

void Estimator::choose_copies(Shape& shape) {
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    Stage& stage = shape.stages[s];
    std::vector<StageCopies::Arrival> arrivals;
    for (const ValueId id : stage.received) {
      if (graph_.values[id].requires_grad) continue;
      arrivals.push_back(
          {id, problem_.link_kind(stage_at(shape, ranges_.producer(id)), static_cast<int>(s))});
    }
    if (arrivals.empty()) continue;
    const auto [entry, is_new] = known_copies_.try_emplace(arrivals);
    if (is_new) entry->second = copies_.choose(arrivals);
    stage.copies = entry->second;
    if (stage.copies.empty()) continue;
    shape.has_copies = true;
    std::erase_if(stage.received, [&](ValueId id) { return makes(stage, id); });
  }
}

void Estimator::add_values(Shape& shape) {
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    const int to = static_cast<int>(s);
    for (const ValueId id : shape.stages[s].received) {
      const int from = stage_at(shape, ranges_.producer(id));
      shape.messages.push_back({ChannelKind::kValue, from, to, id});
      int& last = last_consumer_[id];
      if (last < 0) shape.stages[from].sent.push_back(id);
      if (graph_.values[id].requires_grad) {
        shape.messages.push_back({ChannelKind::kGradient, to, last < 0 ? from : last, id});
      }
      last = to;
    }
  }
  for (Stage& stage : shape.stages) {
    std::sort(stage.sent.begin(), stage.sent.end());
    for (const ValueId id : stage.received) last_consumer_[id] = -1;
  }
}

/// The stage of a parameter's first use owns it, others send it their sums.
void Estimator::add_ties(Shape& shape) const {
  for (const std::vector<int>& sites : ranges_.shared()) {
    const int owner = stage_at(shape, ranges_.sites()[sites.front()].position);
    int last = owner;
    for (std::size_t i = 1; i < sites.size(); ++i) {
      const PlacedSite& site = ranges_.sites()[sites[i]];
      shape.stages[owner].further_elements += static_cast<double>(site.elements);
      const int stage = stage_at(shape, site.position);
      if (stage == owner) continue;
      shape.stages[owner].tie_bytes +=
          site.elements * simulate::gradient_bytes_per_element(site.dtype);
      shape.messages.push_back({ChannelKind::kTieGradient, stage, owner, sites[i]});
      if (stage != last) {
        shape.messages.push_back({ChannelKind::kTieValue, owner, stage, site.parameter});
      }
      last = stage;
    }
  }
}

std::int64_t Estimator::bytes_of(const Message& message) const {
  const std::int64_t microbatch = problem_.options.batch.microbatch;
  switch (message.kind) {
    case ChannelKind::kValue:
      return simulate::span_bytes(graph_.values[message.item], microbatch);
    case ChannelKind::kGradient:
      return graph::bytes_at(graph_.values[message.item], microbatch);
    case ChannelKind::kTieGradient: {
      const PlacedSite& site = ranges_.sites()[message.item];
      return site.elements * simulate::gradient_bytes_per_element(site.dtype);
    }
    case ChannelKind::kTieValue:
      return graph::bytes_at(graph_.values[graph_.parameters[message.item].value], 0);
  }
  return 0;
}

TimedStage Estimator::timed(const Shape& shape, int stage) {
  const Stage& from = shape.stages[stage];
  const StageRange& range = *from.range;
  const profile::StepCosts& step = problem_.profile.step;
  TimedStage timed = step_.stages[stage];
  timed.forward_us = range.forward_us;
  timed.input_us = range.input_us;
  timed.weight_us = range.weight_us;
  double backward_us = range.backward_us;
  simulate::SampleUse samples = range.samples;
  for (const int position : from.copies) {
    const profile::NodeTime& time = ranges_.time(position);
    samples |= ranges_.samples(position);
    timed.forward_us += time.forward_us;
    timed.input_us += time.input_us;
    timed.weight_us += time.weight_us;
    backward_us += time.backward_us();
  }
  if (problem_.profile.held) {
    const profile::Slowdown slowdown =
        profile::slowdown(problem_.profile, rules_.in_flight[stage] * kept_bytes(shape, from));
    timed.forward_us *= slowdown.forward;
    timed.input_us *= slowdown.backward;
    timed.weight_us *= slowdown.backward;
  }
  if (samples.forward) timed.forward_us += step.read_us;
  for (const RangeBucket& bucket : range.buckets) {
    timed.reduces.push_back(
        {backward_us > 0 ? bucket.ready_us / backward_us : 0,
         simulate::bucket_us(problem_.profile, data_groups_[stage], bucket.bucket,
                             {.gradient_dtype = rules_.memory.gradient_dtype})});
  }
  timed.tie_sum_us = from.further_elements * step.fold_ns / 1000;
  timed.norm_us = range.owned * step.fold_ns / 1000;
  timed.update_us = range.owned * step.optimizer_ns / 1000;
  return timed;
}

/// As layout::stage_losses has it.
void Estimator::add_weights(const Shape& shape, TimedStep& step) const {
  if (problem_.options.replicas == 1) return;
  for (const graph::LossOutput& loss : graph_.losses) {
    if (!loss.weight) continue;
    const int maker = stage_at(shape, ranges_.producer(loss.value));
    int last = maker;
    for (int s = maker + 1; s < problem_.num_stages; ++s) {
      const std::vector<ValueId>& received = shape.stages[s].received;
      if (std::find(received.begin(), received.end(), loss.value) != received.end()) last = s;
    }
    step.stages[maker].weighs = true;
    if (loss.coefficient != 0) step.stages[last].weighs = true;
  }
}

TimedStep Estimator::timed(const Shape& shape) {
  TimedStep step = step_;
  for (std::size_t s = 0; s < shape.stages.size(); ++s) {
    step.stages[s] = timed(shape, static_cast<int>(s));
  }
  add_weights(shape, step);
  for (const Message& message : shape.messages) {
    const std::int64_t bytes = bytes_of(message);
    TimedMessage timed{message, profile::message_work_us(problem_.profile.step, bytes), {}};
    for (int r = 0; r < problem_.options.replicas; ++r) {
      timed.delays_us.push_back(link_us(kind(message.from_stage, message.to_stage, r), bytes));
    }
    step.messages.push_back(std::move(timed));
  }
  return step;
}

double Estimator::step_us(const Cuts& cuts, double most_us) {
  if (!is_lean()) return forecast(cuts).forecast.simulation.step_us;
  const TimedStep step = timed(shape(cuts));
  return crowded_clock_ ? crowded_clock_->play(step, most_us) : clock_.play(step);
}

const Candidate& Estimator::forecast(const Cuts& cuts) {
  if (forecast_.empty() || forecast_cuts_ != cuts) {
    forecast_.clear();
    forecast_.push_back(evaluate(problem_, setting_, cuts));
    forecast_cuts_ = cuts;
  }
  return forecast_.front();
}

}  // namespace trireme::partition
