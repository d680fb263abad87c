// Question: what does replaying a recorded graph cost over calling the unmodified module?
//
// One step of four microbatches, forward and backward: the module with plain autograd against the
// serial executor, one stage, one lane, one thread. Gradients are compared bit by bit first. Then:
// how long recording a model of about 1,000 operators takes beyond its forward passes.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <cstring>

#include "benchmarks/alternate.h"
#include "benchmarks/json_main.h"
#include "trireme/base/json.h"
#include "trireme/engine/memory/process_memory.h"
#include "trireme/engine/record/recorder.h"
#include "trireme/engine/reference/serial_executor.h"
#include "trireme/model.h"
#include "trireme/plan/graph/graph_json.h"
#include "trireme/plan/layout/manual_plan.h"

namespace trireme::benchmarks {
namespace {

constexpr std::int64_t kMicrobatches = 4;

/// Pre-norm feed-forward blocks with attention-free mixing: matmuls, norms and cheap operators in
/// about the proportion of a transformer.
struct Blocks : torch::nn::Module {
  torch::nn::ModuleList layers;
  std::int64_t width;

  Blocks(std::int64_t width, int depth) : width(width) {
    for (int i = 0; i < depth; ++i) {
      layers->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})));
      layers->push_back(torch::nn::Linear(width, 2 * width));
      layers->push_back(torch::nn::Linear(2 * width, width));
    }
    register_module("layers", layers);
  }

  torch::Tensor forward(const Batch& batch) {
    auto x = batch["x"];
    for (std::size_t i = 0; i < layers->size(); i += 3) {
      auto y = layers[i]->as<torch::nn::LayerNorm>()->forward(x);
      y = torch::gelu(layers[i + 1]->as<torch::nn::Linear>()->forward(y));
      x = x + layers[i + 2]->as<torch::nn::Linear>()->forward(y);
    }
    return (x - batch["y"]).square().mean();
  }
};

/// A recurrent cell of small operators, unrolled: gates by sigmoid and tanh, products and sums.
struct Cell : torch::nn::Module {
  torch::nn::Linear gates{nullptr};
  std::int64_t width;
  int length;

  Cell(std::int64_t width, int length) : width(width), length(length) {
    gates = register_module("gates", torch::nn::Linear(2 * width, 4 * width));
  }

  torch::Tensor forward(const Batch& batch) {
    const auto x = batch["x"];
    auto hidden = torch::zeros_like(x), state = torch::zeros_like(x);
    for (int t = 0; t < length; ++t) {
      const auto parts = gates->forward(torch::cat({x, hidden}, 1)).chunk(4, 1);
      state = torch::sigmoid(parts[0]) * state + torch::sigmoid(parts[1]) * torch::tanh(parts[2]);
      hidden = torch::sigmoid(parts[3]) * torch::tanh(state);
    }
    return (hidden - batch["y"]).square().mean();
  }
};

enum class Kind : std::uint8_t { kBlocks, kCell };

struct Case {
  std::int64_t width;
  int depth;          ///< Blocks, or steps of the cell.
  std::int64_t rows;  ///< In a microbatch.
  Kind kind = Kind::kBlocks;
};

Batch make_batch(const Case& one, std::int64_t size) {
  Batch batch;
  batch.set("x", torch::randn({size, one.width}));
  batch.set("y", torch::randn({size, one.width}));
  return batch;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

template <typename Module>
Json measure_replay(const Case& one, int rounds) {
  torch::manual_seed(0);
  const auto module = std::make_shared<Module>(one.width, one.depth);
  const Model model = make_model(module);
  const auto recording = record::record(
      model, [&](std::int64_t size, std::uint64_t) { return make_batch(one, size); },
      graph::Mode::kTrain);
  const layout::Plan plan = layout::make_manual_plan(
      recording.graph, graph::graph_sha256(recording.graph), {},
      {.global_batch = one.rows * kMicrobatches, .microbatch = one.rows, .lanes = 1});
  const parameters::ParameterStore store(layout::make_parameter_map(recording.graph, plan),
                                         recording.graph, recording.tensors, {});
  reference::SerialExecutor executor(recording, plan, store, 0);
  std::vector<Batch> microbatches;
  for (std::int64_t m = 0; m < kMicrobatches; ++m)
    microbatches.push_back(make_batch(one, one.rows));

  const auto plain = [&] {
    for (auto& parameter : module->parameters()) parameter.mutable_grad() = torch::Tensor();
    for (const Batch& batch : microbatches) {
      (module->forward(batch) / static_cast<double>(kMicrobatches)).backward();
    }
  };
  const auto replay = [&] { executor.run_step(0, microbatches); };
  plain();
  replay();
  replay();
  int wrong = 0;
  const auto named = module->named_parameters();
  for (const auto& item : named) {
    const auto place = store.owner(item.key());
    const auto mine = parameters::slot_view(executor.gradients().gradients().flat(place.bucket),
                                            store.slot(place), item.value());
    wrong += same_bits(mine, item.value().grad()) ? 0 : 1;
  }
  const Times times = alternate(plain, replay, rounds);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times.first_ms.size(); ++i) {
    ratios.push_back(times.second_ms[i] / times.first_ms[i]);
  }
  return {{"operation", "forward+backward"},
          {"model", one.kind == Kind::kCell ? "cell" : "blocks"},
          {"captured", executor.capture_reports()[0].num_replayed > 0},
          {"width", one.width},
          {"operators", recording.graph.nodes.size()},
          {"rows", one.rows},
          {"plain_ms", median(times.first_ms)},
          {"replay_ms", median(times.second_ms)},
          {"ratio_of_medians", median(times.second_ms) / median(times.first_ms)},
          {"median_of_ratios", median(ratios)},
          {"wrong", wrong}};
}

Json measure_recording(int rounds) {
  const Case one{.width = 64, .depth = 125, .rows = 8};
  const Model model = make_model(std::make_shared<Blocks>(one.width, one.depth));
  const record::BatchMaker maker = [&](std::int64_t size, std::uint64_t) {
    return make_batch(one, size);
  };
  std::size_t operators = 0;
  const auto forwards = [&] {
    for (std::int64_t size : record::kRecordedBatches) model.forward(maker(size, 0));
  };
  const auto recordings = [&] {
    operators = record::record(model, maker, graph::Mode::kTrain).graph.nodes.size();
  };
  const Times times = alternate(forwards, recordings, rounds);
  return {{"operation", "record"},
          {"operators", operators},
          {"forwards_ms", median(times.first_ms)},
          {"record_ms", median(times.second_ms)},
          {"beyond_forward_ms", median(times.second_ms) - median(times.first_ms)}};
}

int run(const std::string& json_file) {
  memory::apply_torch_settings();
  Json results = Json::array();
  for (const Case& one :
       {Case{32, 4, 8}, Case{64, 4, 8}, Case{128, 4, 8}, Case{256, 4, 8},
        Case{32, 8, 8, Kind::kCell}, Case{64, 8, 8, Kind::kCell}, Case{128, 8, 8, Kind::kCell},
        Case{256, 8, 8, Kind::kCell}, Case{256, 4, 512}, Case{512, 2, 512}, Case{1024, 1, 512},
        Case{1024, 1, 64}}) {
    const int rounds = one.rows < 64 ? 200 : 60;
    results.push_back(one.kind == Kind::kCell ? measure_replay<Cell>(one, rounds)
                                              : measure_replay<Blocks>(one, rounds));
    const Json& r = results.back();
    fmt::print(
        "replay  {:<6}  width {:>5}  rows {:>4}  {} operators  plain {:.3f} ms  replay {:.3f} ms  "
        "ratio {:.4f} "
        "(median of ratios {:.4f})  captured {}  wrong {}\n",
        r["model"].get<std::string>(), one.width, one.rows, r["operators"].get<int>(),
        r["plain_ms"].get<double>(), r["replay_ms"].get<double>(),
        r["ratio_of_medians"].get<double>(), r["median_of_ratios"].get<double>(),
        r["captured"].get<bool>(), r["wrong"].get<int>());
    std::fflush(stdout);
  }
  results.push_back(measure_recording(20));
  const Json& r = results.back();
  fmt::print(
      "record  {} operators  forwards {:.1f} ms  with recording {:.1f} ms  beyond {:.1f} ms\n",
      r["operators"].get<int>(), r["forwards_ms"].get<double>(), r["record_ms"].get<double>(),
      r["beyond_forward_ms"].get<double>());
  write_json(json_file, results);
  return 0;
}

}  // namespace
}  // namespace trireme::benchmarks

int main(int argc, char** argv) {
  using namespace trireme::benchmarks;
  return exit_code_of("replay_bench", [&] { return run(json_file_of(argc, argv)); });
}
