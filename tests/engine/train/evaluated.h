#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/train/layouts.h"
#include "trireme/engine/record/torch_terms.h"
#include "trireme/engine/train/evaluate_ranks.h"
#include "trireme/engine/train/serial_session.h"

namespace trireme::train {

/// Knows whether anybody read from it.
class Noticing : public data::Source {
 public:
  explicit Noticing(std::shared_ptr<const data::Source> inner) : inner_(std::move(inner)) {}
  std::int64_t num_samples() const override { return inner_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return inner_->fields(); }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    was_read = true;
    inner_->read(sample, destinations);
  }
  mutable std::atomic<bool> was_read = false;

 private:
  std::shared_ptr<const data::Source> inner_;
};

/// The first 15 of the model's samples: a remainder of one.
inline std::shared_ptr<Noticing> held_out(const Workload& workload) {
  std::vector<std::pair<std::string, at::Tensor>> fields;
  for (const data::Field& field : workload.training->fields()) {
    std::vector<std::int64_t> shape = {15};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    const at::Tensor tensor = at::empty(shape, record::to_scalar_type(field.dtype));
    fields.emplace_back(field.name, tensor);
  }
  for (std::int64_t i = 0; i < 15; ++i) {
    std::vector<std::span<std::byte>> places;
    for (auto& [name, tensor] : fields) {
      at::Tensor row = tensor[i];
      places.emplace_back(static_cast<std::byte*>(row.mutable_data_ptr()), row.nbytes());
    }
    workload.training->read({i}, places);
  }
  return std::make_shared<Noticing>(tensor_source(fields));
}

struct Evaluated {
  StepLosses losses;
  std::vector<bool> has_read;  ///< By rank.
};

inline record::Recording recorded_in(graph::Mode mode, const Workload& workload) {
  return record::record(workload.model, BatchReader(workload.training, workload.model).maker(),
                        mode);
}

/// After one step of training, so that buffers are not those of the beginning.
inline Evaluated evaluate_on_ranks(const Layout& layout, std::int64_t microbatches_at_once = 256) {
  const layout::Plan plan = plan_of(layout);
  const int num_ranks = layout.num_ranks();
  Evaluated result{{}, std::vector<bool>(num_ranks)};
  std::mutex mutex;
  run_ranks(num_ranks, [&](const collectives::World& world) {
    Workload workload = construct(workload_of(layout.model), 3);
    const auto source = held_out(workload);
    workload.evaluation = source;
    const auto evaluation = recorded_in(graph::Mode::kEval, workload);
    workload.model.set_training(true);
    const auto recorded = recorded_in(graph::Mode::kTrain, workload);
    RankSession session(world, workload, recorded, plan, {.seed = 3});
    session.step();
    const auto losses =
        evaluate_ranks(world, workload, session, evaluation, {.most_at_once = microbatches_at_once})
            .losses;
    session.step();  // nothing of the evaluation is left on the way
    const std::scoped_lock lock(mutex);
    result.has_read[world.rank()] = source->was_read;
    if (world.rank() == 0) result.losses = losses;
  });
  return result;
}

/// A workload with held-out data, and its recordings.
struct Evaluable {
  explicit Evaluable(const std::string& model) : workload(construct(workload_of(model), 3)) {
    workload.evaluation = held_out(workload);
    evaluation = recorded_in(graph::Mode::kEval, workload);
    workload.model.set_training(true);
    training = recorded_in(graph::Mode::kTrain, workload);
  }

  Workload workload;
  record::Recording evaluation, training;
};

inline StepLosses evaluate_serially(const Layout& layout) {
  Evaluable prepared(layout.model);
  SerialSession session(prepared.workload, prepared.training,
                        plan_of({.model = layout.model, .lanes = layout.lanes}), {.seed = 3});
  session.step();
  return evaluate(prepared.workload, prepared.evaluation, 2, 1);
}

inline void expect_same_losses(const StepLosses& actual, const StepLosses& expected) {
  ASSERT_EQ(actual.losses.size(), expected.losses.size());
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_EQ(actual.losses[i].sum, expected.losses[i].sum) << expected.losses[i].name;
    EXPECT_EQ(actual.losses[i].weight, expected.losses[i].weight);
  }
}

}  // namespace trireme::train
