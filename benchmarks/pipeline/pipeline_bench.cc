// Question: how much faster are two ranks of one thread each, a pipeline of two stages planned from
// a profile, than one process of one thread with the same microbatches; and how well are step time
// and memory predicted?
//
// Both ranks measure a profile at the same time and rank 0 plans. Then, alternating in the same
// run, rank 0 runs a step of the serial executor while rank 1 waits, and both run a step of the
// pipeline. The losses of both are compared bit by bit. The bound is the plan's (2.6 of the
// reference on schedules): no order of the stages' work is faster. Then the same with four ranks,
// more than this machine has cores, for the prediction alone. As a control, all ranks run steps of
// the serial executor at the same time, without a word between them: what that slows them down by
// is the machine's share of what is missing to the ideal.
//
// --json FILE writes FILE.2ranks and FILE.4ranks.

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <tuple>

#include "benchmarks/alternate.h"
#include "benchmarks/json_main.h"
#include "benchmarks/machine.h"
#include "benchmarks/pipeline/encoder.h"
#include "trireme/engine/measure/detect_topology.h"
#include "trireme/engine/measure/measure_profile.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/train/construct_workload.h"
#include "trireme/engine/train/measured_timeline.h"
#include "trireme/engine/train/rank_session.h"
#include "trireme/engine/train/serial_session.h"
#include "trireme/launch/connected_world.h"
#include "trireme/launch/local_ranks.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"
#include "trireme/plan/layout/plan_json.h"
#include "trireme/plan/partition/explain.h"
#include "trireme/plan/partition/partition.h"
#include "trireme/plan/schedule/timeline.h"
#include "trireme/plan/simulate/predicted_timeline.h"

namespace trireme::benchmarks {
namespace {

constexpr int kRounds = 20;
constexpr int kControlRounds = 5;
constexpr std::int64_t kMicrobatch = 8;
constexpr std::uint64_t kSeed = 1;

struct Case {
  const char* name;
  EncoderSize size;
  std::int64_t microbatches;
  std::string schedule;
  BatchLayout batch() const {
    return {.global_batch = kMicrobatch * microbatches, .microbatch = kMicrobatch, .lanes = 1};
  }
};

const TrainingOptions kOptions{
    .seed = kSeed, .optimizer = {.name = "adamw"}, .drift_check_steps = {}};

/// A model that is trained here, and its recording.
struct Trained {
  Workload workload;
  record::Recording recording;

  explicit Trained(const EncoderSize& size)
      : workload(train::construct([&] { return make_encoder(size); }, kSeed)),
        recording(record::record(workload.model,
                                 train::BatchReader(workload.training, workload.model).maker(),
                                 graph::Mode::kTrain)) {}
};

measure::UpdateFunction update_function() {
  const std::shared_ptr<parameters::Optimizer> optimizer =
      train::make_optimizer(kOptions.optimizer);
  return [optimizer](const at::Tensor& value, const at::Tensor& gradient) {
    parameters::update(*optimizer, {"measured", value, gradient, {value.numel()}},
                       {.learning_rate = 1e-3});
  };
}

double ms(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// One rank's part of a case; rank 0 prints.
class Run {
 public:
  Run(const Case& one, const collectives::World& world)
      : case_(one),
        world_(world),
        group_(collectives::make_world_group(world, "bench")),
        ranks_(*group_, world.watch),
        parallel_(one.size) {}

  Json measure() {
    const layout::Plan plan = make_plan();
    serial_.emplace(case_.size);
    const layout::Plan uncut =
        layout::make_manual_plan(parallel_.recording.graph,
                                 graph::graph_sha256(parallel_.recording.graph), {}, case_.batch());
    train::SerialSession serial(serial_->workload, serial_->recording, uncut, kOptions);
    serial.step();  // its memory is complete after that
    const std::int64_t other_bytes = memory::memory_use().live_bytes - parallel_bytes();
    train::RankSession session(world_, parallel_.workload, parallel_.recording, plan, kOptions);
    memory::reset_peak();
    session.step();
    session.step();
    const std::int64_t peak = largest(memory::memory_use().peak_bytes - other_bytes);
    serial.step();  // both have made two steps now
    alternate_steps(serial, session);
    measure_interference(serial);
    compare(train::measured_timeline(world_, session.last_step()));
    const Json drift = measure_drift();
    return report(plan, peak, drift);
  }

 private:
  layout::Plan make_plan() {
    const train::StepReader reader(parallel_.workload, case_.batch(), kSeed);
    const Batch batch = reader.read(0, 0);
    profile_ = measure::measure_profile(
        {.recording = parallel_.recording, .batch = batch, .ranks = ranks_}, &world_.endpoint,
        {.update = update_function()});
    const topology::Topology topology = measure::detect_topology(ranks_, {});
    partition::PartitionOptions options{
        .batch = case_.batch(), .stages = world_.size(), .schedule = case_.schedule};
    const layout::Plan plan =
        partition::partition(parallel_.recording.graph, profile_, topology, options);
    const layout::ParameterMap map = layout::make_parameter_map(parallel_.recording.graph, plan);
    forecast_ = simulate::forecast({parallel_.recording.graph, plan, map, profile_, topology}, {});
    if (world_.rank() == 0) {
      fmt::print("{}\n", partition::explain(parallel_.recording.graph, plan, *forecast_));
    }
    return plan;
  }

  std::int64_t parallel_bytes() const {
    std::int64_t bytes = 0;
    for (const NamedTensor& item : parallel_.workload.model.parameters) {
      bytes += static_cast<std::int64_t>(item.tensor.nbytes());
    }
    return bytes;
  }

  std::int64_t largest(std::int64_t mine) {
    std::int64_t result = 0;
    peaks_.clear();
    for (const std::string& text : collectives::gather(world_, std::to_string(mine), "peaks")) {
      peaks_.push_back(std::stoll(text));
      result = std::max(result, peaks_.back());
    }
    return result;
  }

  void alternate_steps(train::SerialSession& serial, train::RankSession& session) {
    for (int round = 0; round < kRounds; ++round) {
      ranks_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      double loss = 0;
      if (world_.rank() == 0) loss = serial.step().losses.total();
      const auto middle = std::chrono::steady_clock::now();
      ranks_.barrier();
      const auto start = std::chrono::steady_clock::now();
      const double parallel_loss = session.step().losses.total();
      ranks_.barrier();
      if (world_.rank() != 0) continue;
      serial_ms_.push_back(ms(middle - begin));
      parallel_ms_.push_back(ms(std::chrono::steady_clock::now() - start));
      wrong_ += loss == parallel_loss ? 0 : 1;
    }
  }

  /// How fast a process is while all ranks work, each for itself, over how fast it is alone: what
  /// the machine leaves of any speed-up.
  void measure_interference(train::SerialSession& serial) {
    std::vector<double> ratios;
    for (int round = 0; round < kControlRounds; ++round) {
      ranks_.barrier();
      const auto begin = std::chrono::steady_clock::now();
      if (world_.rank() == 0) serial.step();
      const auto middle = std::chrono::steady_clock::now();
      ranks_.barrier();
      const auto start = std::chrono::steady_clock::now();
      serial.step();
      const auto end = std::chrono::steady_clock::now();
      ranks_.barrier();
      ratios.push_back(ms(middle - begin) / ms(end - start));
    }
    beside_others_ = median(ratios);
  }

  /// Prints where the last step went, by rank and kind of operation, predicted and measured.
  void compare(const schedule::Timeline& measured) const {
    if (world_.rank() != 0) return;
    const schedule::Timeline predicted =
        simulate::predicted_timeline(forecast_->program, forecast_->simulation);
    std::map<std::tuple<int, std::string, std::string>, std::pair<double, double>> times;
    for (const schedule::TimelineEvent& e : predicted.events) {
      times[{e.rank, e.track, e.kind}].first += e.duration_us / 1e3;
    }
    for (const schedule::TimelineEvent& e : measured.events) {
      times[{e.rank, e.track, e.kind}].second += e.duration_us / 1e3;
    }
    fmt::print("last step, ms: predicted {:.1f}, measured {:.1f}\n",
               schedule::time_span(predicted).length_us() / 1e3,
               schedule::time_span(measured).length_us() / 1e3);
    for (const auto& [place, time] : times) {
      const auto& [rank, track, kind] = place;
      fmt::print("  rank {} {:<8} {:<10} {:8.1f} {:8.1f}\n", rank, track, kind, time.first,
                 time.second);
    }
  }

  Json measure_drift() {
    const train::StepReader reader(parallel_.workload, case_.batch(), kSeed);
    const Batch batch = reader.read(0, 0);
    Trained fresh(case_.size);  // the session's ranks have let go of others' parameters
    Json result = Json::array();
    for (const measure::RangeDrift& drift :
         measure::drift(profile_, {.recording = fresh.recording, .batch = batch, .ranks = ranks_},
                        {.min_repeats = 10,
                         .max_repeats = 50,
                         .min_time = std::chrono::milliseconds(500),
                         .max_time = std::chrono::seconds(5)})) {
      result.push_back({{"forward", drift.forward}, {"backward", drift.backward}});
    }
    return result;
  }

  Json report(const layout::Plan& plan, std::int64_t peak, const Json& drift) {
    if (world_.rank() != 0) return {};
    double slowest_us = 0;
    for (const simulate::StageCost& stage : forecast_->stages) {
      slowest_us = std::max(slowest_us, stage.forward_us + stage.backward_us());
    }
    const double ideal =
        forecast_->work_us * static_cast<double>(case_.microbatches) / forecast_->plan_bound_us;
    const double serial = median(serial_ms_), parallel = median(parallel_ms_);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < serial_ms_.size(); ++i) {
      ratios.push_back(serial_ms_[i] / parallel_ms_[i]);
    }
    const double speedup = median(ratios);
    Json json = {{"case", case_.name},
                 {"schedule", plan.schedule.name},
                 {"microbatches", case_.microbatches},
                 {"stage_ms", slowest_us / 1e3},
                 {"serial_ms", serial},
                 {"parallel_ms", parallel},
                 {"speedup", speedup},
                 {"ideal_speedup", ideal},
                 {"of_ideal", speedup / ideal},
                 {"beside_others", beside_others_},
                 {"predicted_ms", plan.prediction->step_ms},
                 {"prediction_error", plan.prediction->step_ms / parallel - 1},
                 {"peak_bytes", peak},
                 {"predicted_peak_bytes", forecast_->peak_bytes()},
                 {"peak_error",
                  static_cast<double>(forecast_->peak_bytes()) / static_cast<double>(peak) - 1},
                 {"drift", drift},
                 {"wrong", wrong_}};
    for (std::size_t r = 0; r < peaks_.size(); ++r) {
      json["peaks"].push_back({peaks_[r], forecast_->memory[r].total()});
    }
    return json;
  }

  const Case& case_;
  const collectives::World& world_;
  std::unique_ptr<collectives::Group> group_;
  measure::BusyRanks ranks_;
  Trained parallel_;
  std::optional<Trained> serial_;
  profile::Profile profile_;
  std::optional<simulate::Forecast> forecast_;
  std::vector<double> serial_ms_, parallel_ms_;
  std::vector<std::int64_t> peaks_;
  double beside_others_ = 1;
  int wrong_ = 0;
};

int run_rank(const RankEnvironment& environment, const std::string& json_file) {
  memory::apply_torch_settings();
  launch::ConnectedWorld connected(environment, Logger(LogLevel::kInfo), std::chrono::minutes(5));
  const collectives::World world = connected.world();
  Json results = Json::array();
  const EncoderSize size;
  std::vector<Case> cases = {{"more ranks than cores", size, 8, "interleaved"}};
  if (world.size() == 2) {
    cases = {{"encoder", size, 8, "interleaved"},
             {"encoder", size, 8, "simple"},
             {"encoder", size, 16, "interleaved"}};
  }
  for (const Case& one : cases) {
    const Json r = Run(one, world).measure();
    if (world.rank() != 0) continue;
    fmt::print(
        "{} {} m={}: serial {:.1f} ms, {} ranks {:.1f} ms: {:.3f}x of ideal {:.3f}x = {:.3f}; "
        "predicted {:.1f} ms ({:+.1f} %); peak {:.1f} MiB, predicted {:.1f} ({:+.1f} %); stage "
        "{:.1f} ms; wrong {}\n  speed beside others that work for themselves: {:.3f} of alone\n  "
        "peaks by rank, measured and predicted: {}\n  drift of the profile: "
        "{}\n",
        r["case"].get<std::string>(), r["schedule"].get<std::string>(),
        r["microbatches"].get<int>(), r["serial_ms"].get<double>(), world.size(),
        r["parallel_ms"].get<double>(), r["speedup"].get<double>(),
        r["ideal_speedup"].get<double>(), r["of_ideal"].get<double>(),
        r["predicted_ms"].get<double>(), 100 * r["prediction_error"].get<double>(),
        r["peak_bytes"].get<double>() / (1 << 20),
        r["predicted_peak_bytes"].get<double>() / (1 << 20), 100 * r["peak_error"].get<double>(),
        r["stage_ms"].get<double>(), r["wrong"].get<int>(), r["beside_others"].get<double>(),
        r["peaks"].dump(), r["drift"].dump());
    std::fflush(stdout);
    results.push_back(r);
  }
  if (world.rank() == 0 && !json_file.empty()) {
    std::ofstream(json_file + "." + std::to_string(world.size()) + "ranks")
        << results.dump(2) << "\n";
  }
  connected.shutdown();
  return 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  using namespace trireme;
  return benchmarks::exit_code_of("pipeline_bench", [&] {
    const auto ranks = read_environment().ranks;
    if (ranks) return benchmarks::run_rank(*ranks, benchmarks::json_file_of(argc, argv));
    const benchmarks::Machine machine;
    fmt::print("load before: {}\n", machine.load());
    const std::span words(argv, static_cast<std::size_t>(argc));
    const int code = launch::run_local_ranks(2, words);
    return code != 0 ? code : launch::run_local_ranks(4, words);
  });
}
