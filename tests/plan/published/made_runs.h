#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "trireme/plan/analytic/predict.h"
#include "trireme/plan/published/run_case.h"

namespace trireme::published::testing {

/// Runs that took what the predictor says for devices that achieve `truth`: several models and layouts.
inline std::vector<RunCase> made_runs(const std::string& device,
                                      const analytic::AchievedParts& truth,
                                      const std::string& source = "made") {
  struct Made {
    const char* model;
    std::int64_t tensor, pipeline, data, microbatch, batch;
  };
  std::vector<RunCase> cases;
  analytic::PipelineClocks clocks;
  for (const Made& made : {Made{"gpt-1.7b", 1, 1, 32, 16, 512}, Made{"gpt-3.6b", 2, 1, 32, 16, 512},
                           Made{"gpt-3.6b", 2, 4, 8, 2, 512}, Made{"gpt-7.5b", 4, 1, 32, 16, 512},
                           Made{"gpt-7.5b", 1, 8, 4, 1, 512}, Made{"gpt-18b", 8, 1, 32, 8, 1024},
                           Made{"gpt-18b", 2, 8, 4, 2, 512}, Made{"gpt-39b", 8, 2, 32, 4, 1536},
                           Made{"gpt-39b", 4, 8, 2, 1, 256}, Made{"gpt-76b", 8, 4, 32, 2, 1792}}) {
    RunCase one;
    one.row = static_cast<int>(cases.size()) + 2;
    one.source = source;
    one.device = device;
    one.shape = analytic::model(made.model);
    one.machine = analytic::machine_of_text(device);
    one.layout.tensor = made.tensor;
    one.layout.pipeline = made.pipeline;
    one.layout.data = made.data;
    one.layout.microbatch = made.microbatch;
    one.layout.global_batch = made.batch;
    one.layout.seq_len = 2048;
    one.layout.type = analytic::MatrixType::kF16;
    one.layout.recompute = analytic::RecomputeKind::kFull;
    one.step_s = analytic::predict_time(one.shape, one.machine, one.layout, truth, clocks).step_s;
    cases.push_back(one);
  }
  return cases;
}

}  // namespace trireme::published::testing
