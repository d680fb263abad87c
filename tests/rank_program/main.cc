// What ranks_test starts: the command line over the test models and over `gated`, whose ranks stop
// where the test wants them to. Told by the environment:
//
//   RANK_TEST_FOLDER   each rank's standard error goes to `stderr.RANK` there; `events` gets lines
//                      `start RANK PID` and `stop RANK PID`.
//   RANK_TEST_STOP     words `PHASE:RANK`: the rank stops for ever at its first `start` (it knows
//                      no others), `construct`, `record`, `forward` (of a step), `evaluate` or
//                      `exit` (after its goodbye).

#include <fcntl.h>
#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/models.h"
#include "trireme/command_line.h"
#include "trireme/model.h"

namespace trireme {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Empty in a process that is no rank.
std::string rank_of_process() {
  const std::string rank = variable("TRIREME_RANK");
  return rank.empty() ? variable("RANK") : rank;
}

void note(const std::string& event) {
  const std::string folder = variable("RANK_TEST_FOLDER");
  if (folder.empty() || rank_of_process().empty()) return;
  const std::string line = event + " " + rank_of_process() + " " + std::to_string(getpid()) + "\n";
  const int file = open((folder + "/events").c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  [[maybe_unused]] const auto written = write(file, line.data(), line.size());
  close(file);
}

void come_to(const std::string& phase) {
  if (rank_of_process().empty()) return;
  std::istringstream stops(variable("RANK_TEST_STOP"));
  const std::string here = phase + ":" + rank_of_process();
  std::string stop;
  while (stops >> stop && stop != here) continue;
  if (stop != here) return;
  note("stop");
  for (;;) pause();
}

/// Stops where samples are read.
class GatedSource : public data::Source {
 public:
  explicit GatedSource(std::shared_ptr<const data::Source> source) : source_(std::move(source)) {}

  std::int64_t num_samples() const override { return source_->num_samples(); }
  const std::vector<data::Field>& fields() const override { return source_->fields(); }
  void read(data::Sample sample,
            std::span<const std::span<std::byte>> destinations) const override {
    come_to("evaluate");
    source_->read(sample, destinations);
  }

 private:
  std::shared_ptr<const data::Source> source_;
};

/// Three blocks, each with a function that cannot be recorded.
struct Gated : torch::nn::Module {
  std::vector<torch::nn::Linear> linears;
  std::vector<Opaque> gates;
  bool is_recording = false;

  Gated() {
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      linears.push_back(register_module("linear" + number, torch::nn::Linear(4, 4)));
      gates.push_back(opaque("gate" + number, [this](const TensorList& inputs) {
        // The first stage comes to an evaluation where it reads, the others here.
        if (!is_recording) come_to(is_training() ? "forward" : "evaluate");
        return TensorList{inputs[0] * 2};
      }));
    }
  }

  torch::Tensor forward(const Batch& batch) {
    come_to("record");
    is_recording = true;
    torch::Tensor x = batch["x"];
    for (std::size_t i = 0; i < linears.size(); ++i) {
      x = gates[i]({torch::tanh(linears[i](x))})[0];
    }
    is_recording = false;
    return x.square().mean();
  }
};

Workload make_gated() {
  come_to("construct");
  const auto source = tensor_source({{"x", torch::randn({40, 4})}});
  return {make_model(std::make_shared<Gated>()), source, std::make_shared<GatedSource>(source)};
}

/// 64 MiB of weights; a layer is frozen, and one parameter has no use.
struct Large : torch::nn::Module {
  static constexpr int kWidth = 1024;
  std::vector<torch::nn::Linear> layers;

  Large() {
    for (int i = 0; i < 16; ++i) {
      layers.push_back(
          register_module("layer" + std::to_string(i), torch::nn::Linear(kWidth, kWidth)));
    }
    layers[9]->weight.set_requires_grad(false);
    register_parameter("unused", torch::randn({kWidth, 64}));
  }

  torch::Tensor forward(const Batch& batch) {
    torch::Tensor x = batch["x"];
    for (torch::nn::Linear& layer : layers) x = x + torch::tanh(layer(x));
    return x.square().mean();
  }
};

Workload make_large() {
  const auto source = tensor_source({{"x", torch::randn({16, Large::kWidth})}});
  return {make_model(std::make_shared<Large>()), source, source};
}

/// An evaluation of it never ends; `events` gets a line `evaluate` when it begins.
class EndlessSource : public data::Source {
 public:
  std::int64_t num_samples() const override { return 1'000'000'000; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  void read(data::Sample, std::span<const std::span<std::byte>> destinations) const override {
    if (!is_noted_.exchange(true)) note("evaluate");
    std::ranges::fill(destinations[0], std::byte{0});
  }

 private:
  std::vector<data::Field> fields_ = {{"x", Dtype::kF32, {4}}};
  mutable std::atomic<bool> is_noted_{false};
};

Workload make_endlessly_evaluated() {
  const auto net = std::make_shared<torch::nn::LinearImpl>(4, 4);
  return {make_model(net, [net](const Batch& b) { return net->forward(b["x"]).square().mean(); }),
          tensor_source({{"x", torch::randn({40, 4})}}), std::make_shared<EndlessSource>()};
}

/// Fails in torch: the data has one feature too many.
Workload make_misshapen() {
  const auto net = std::make_shared<torch::nn::LinearImpl>(3, 2);
  return {make_model(net, [net](const Batch& b) { return net->forward(b["x"]).mean(); }),
          tensor_source({{"x", torch::randn({40, 4})}}), nullptr};
}

Workload make_test_model(const std::string& name) {
  models::TestModel test = models::make(name);
  const auto source = [&](std::int64_t size, std::uint64_t seed) {
    std::vector<std::pair<std::string, at::Tensor>> fields;
    const Batch samples = test.make_batch(size, seed);
    for (const auto& [field, tensor] : samples.tensors()) fields.emplace_back(field, tensor);
    return tensor_source(fields);
  };
  const auto training = source(60, 5);
  return {test.model, training, source(11, 6)};
}

int run(int argc, char** argv) {
  const std::string folder = variable("RANK_TEST_FOLDER");
  if (!folder.empty() && !rank_of_process().empty()) {
    const std::string file = folder + "/stderr." + rank_of_process();
    if (std::freopen(file.c_str(), "w", stderr) == nullptr) return 1;
  }
  note("start");
  come_to("start");
  std::map<std::string, Recipe> workloads = {{"gated", {make_gated}},
                                             {"endlessly_evaluated", {make_endlessly_evaluated}},
                                             {"large", {make_large}},
                                             {"misshapen", {make_misshapen}}};
  for (const std::string& name : models::names()) {
    workloads[name].make = [name] { return make_test_model(name); };
  }
  const int code = run_command_line(argc, argv, workloads);
  come_to("exit");
  return code;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) { return trireme::run(argc, argv); }
