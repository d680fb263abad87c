#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "tests/models/models.h"
#include "trireme/engine/measure/node_measure.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/plan/graph/graph_queries.h"

namespace trireme::measure {

/// Few repeats: tests look at what is measured, not at how fast it is.
inline RepeatOptions quick() {
  return {.max_repeats = 20, .min_time = std::chrono::microseconds(200)};
}

/// A model, recorded, with a microbatch of data.
struct Recorded {
  Recorded(Model model_to_record, const record::BatchMaker& make_batch, std::int64_t microbatch)
      : model((memory::apply_torch_settings(), std::move(model_to_record))),
        recording(record::record(model, make_batch, graph::Mode::kTrain)),
        batch(make_batch(microbatch, 100)),
        microbatch(microbatch) {
    set_step_scalars(batch, model, 0);
  }

  explicit Recorded(models::TestModel test, std::int64_t microbatch = 8)
      : Recorded(std::move(test.model), test.make_batch, microbatch) {}

  explicit Recorded(const std::string& name) : Recorded(models::make(name)) {}

  Subject subject() const { return {recording, batch, ranks}; }
  NodeCosts costs() const { return measure_nodes(subject(), quick()); }

  /// Position of the `index`-th node with this operator.
  int position_of(const std::string& op, int index = 0) const {
    for (std::size_t p = 0; p < recording.graph.nodes.size(); ++p) {
      if (recording.graph.nodes[p].op == op && index-- == 0) return static_cast<int>(p);
    }
    return -1;
  }

  Model model;
  record::Recording recording;
  Batch batch;
  std::int64_t microbatch;
  BusyRanks ranks;
};

}  // namespace trireme::measure
