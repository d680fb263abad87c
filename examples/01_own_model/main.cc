// torch/torch.h is all of torch: it compiles in 35 s, these in 20.
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <trireme/trireme.h>

namespace F = torch::nn::functional;

/// Any module; it knows nothing of Trireme.
struct Net : torch::nn::Module {
  torch::nn::Linear in{2, 64}, middle{64, 64}, out{64, 3};
  torch::nn::BatchNorm1d norm{64};

  Net() {
    register_module("in", in);
    register_module("middle", middle);
    register_module("norm", norm);
    register_module("out", out);
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto h = torch::relu(in(x));
    return out(h + torch::dropout(torch::relu(norm(middle(h))), 0.1, is_training()));
  }
};

/// Points on three arms of a spiral, and the arm of each.
std::shared_ptr<const trireme::data::Source> spirals(int64_t n) {
  const auto arm = torch::randint(3, {n});
  const auto r = torch::rand({n}), angle = 4 * r + arm * 2.094 + 0.1 * torch::randn({n});
  const auto x = torch::stack({r * torch::cos(angle), r * torch::sin(angle)}, 1);
  return trireme::tensor_source({{"x", x}, {"arm", arm}});
}

trireme::Workload make() {
  const auto net = std::make_shared<Net>();
  auto model = trireme::make_model(net, [net](const trireme::Batch& batch) -> trireme::Losses {
    const auto scores = net->forward(batch["x"]);
    return {trireme::mean_loss(F::cross_entropy(scores, batch["arm"])),
            trireme::output(scores, "scores"), trireme::output(batch["arm"], "labels")};
  });
  const auto metrics = [] { return trireme::metrics::together(trireme::metrics::accuracy()); };
  return {std::move(model), spirals(4096), spirals(1000), metrics};
}

int main(int argc, char** argv) { return trireme::run_command_line(argc, argv, make); }
