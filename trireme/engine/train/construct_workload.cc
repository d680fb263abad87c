#include "trireme/engine/train/construct_workload.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/random.h"
#include "trireme/engine/record/deferred_init.h"
#include "trireme/engine/record/observer.h"
#include "trireme/engine/record/state_guard.h"
#include "trireme/error.h"

namespace trireme::train {
namespace {

bool is_random(const at::RecordFunction& call) {
  const auto name = call.operator_name();
  if (!name) return false;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  return op && op->hasTag(at::Tag::nondeterministic_seeded);
}

/// Notes which memory each random operator fills.
class DrawLog : public record::OperatorListener {
 public:
  void before(int, const at::RecordFunction& call) override {
    if (!is_random(call)) return;
    const auto inputs = call.inputs();
    const bool fills = !inputs.empty() && inputs[0].isTensor() && inputs[0].toTensor().defined();
    targets.push_back(fills ? inputs[0].toTensor() : at::Tensor());
  }
  void after(int, const at::RecordFunction& call) override {
    if (!is_random(call) || targets.back().defined() || call.outputs().empty()) return;
    const c10::IValue& made = call.outputs()[0];  // torch::randn and its like
    if (made.isTensor()) targets.back() = made.toTensor();
  }
  void before_opaque(int, const record::OpaqueCall&) override {}
  void after_opaque(int, const record::OpaqueCall&) override {}

  std::vector<at::Tensor> targets;  ///< By draw; kept alive, so that memory is not used twice.
};

/// Seeds each draw from the stream that the first run decided on.
class DrawSeeder : public record::OperatorListener {
 public:
  explicit DrawSeeder(std::vector<std::uint64_t> seeds) : seeds_(std::move(seeds)) {}

  void before(int, const at::RecordFunction& call) override {
    if (!is_random(call)) return;
    if (next_ >= seeds_.size()) {
      throw Error(ErrorKind::kInvalidArgument,
                  "making the workload a second time drew more random numbers than the first; it "
                  "has to do the same each time");
    }
    record::seed_generator(seeds_[next_++]);
  }
  void after(int, const at::RecordFunction&) override {}
  void before_opaque(int, const record::OpaqueCall&) override {}
  void after_opaque(int, const record::OpaqueCall&) override {}

 private:
  std::vector<std::uint64_t> seeds_;
  std::size_t next_ = 0;
};

std::vector<std::uint64_t> seeds_of(const DrawLog& log, const Model& model, std::uint64_t seed) {
  std::map<std::string, std::uint64_t> draws;
  std::vector<std::uint64_t> seeds;
  for (std::size_t i = 0; i < log.targets.size(); ++i) {
    std::string owner;
    for (const NamedTensor& parameter : model.parameters) {
      if (owner.empty() && log.targets[i].defined() && parameter.tensor.defined() &&
          parameter.tensor.is_alias_of(log.targets[i])) {
        owner = parameter.name;
      }
    }
    seeds.push_back(owner.empty() ? stream_seed(seed, {static_cast<std::uint64_t>(i)})
                                  : stream_seed(stream_seed(seed, owner), {draws[owner]++}));
  }
  return seeds;
}

/// deferred   null: everything is initialised at once.
template <typename Listener>
Workload make_observed(const MakeWorkload& make_workload, Listener& listener,
                       record::DeferredInit* deferred) {
  const record::Observation observation(listener);
  Workload workload;
  const auto make = [&] { workload = make_workload(); };
  if (deferred != nullptr) {
    deferred->making(make);
  } else {
    make();
  }
  observation.rethrow();
  return workload;
}

/// What is no parameter gets its values now.
void set_fill(Model& model, std::shared_ptr<record::DeferredInit> deferred) {
  std::vector<at::Tensor> parameters;
  for (const NamedTensor& parameter : model.parameters) parameters.push_back(parameter.tensor);
  deferred->fill_all_but(parameters);
  model.fill = [deferred = std::move(deferred)](const at::Tensor& parameter) {
    deferred->fill(parameter);
  };
}

}  // namespace

Workload construct(const MakeWorkload& make_workload, std::uint64_t seed, bool defers) {
  const record::GeneratorTurn turn;
  std::vector<std::uint64_t> seeds;
  record::seed_generator(seed);
  {
    DrawLog log;
    record::DeferredInit dropped;
    const Workload first = make_observed(make_workload, log, defers ? &dropped : nullptr);
    seeds = seeds_of(log, first.model, seed);
  }
  record::seed_generator(seed);
  DrawSeeder seeder(std::move(seeds));
  const auto deferred = defers ? std::make_shared<record::DeferredInit>() : nullptr;
  Workload workload = make_observed(make_workload, seeder, deferred.get());
  if (defers) set_fill(workload.model, deferred);
  return workload;
}

}  // namespace trireme::train
