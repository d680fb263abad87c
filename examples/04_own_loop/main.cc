#include <torch/torch.h>
#include <trireme/trireme.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

/// y = x W, learnt from noisy samples by two layers.
trireme::Workload make() {
  const auto net = std::make_shared<torch::nn::SequentialImpl>(
      torch::nn::Linear(8, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  auto model = trireme::make_model(net, [net](const trireme::Batch& batch) {
    return torch::mse_loss(net->forward(batch["x"]), batch["y"]);
  });
  const auto x = torch::randn({1024, 8});
  const auto y = x.matmul(torch::randn({8, 1})) + 0.01 * torch::randn({1024, 1});
  const auto source = trireme::tensor_source({{"x", x}, {"y", y}});
  return {std::move(model), source, source};
}

/// A loop of one's own: steps, an evaluation now and then, an end when it is good enough.
void train(trireme::World& world, const std::string& weights) {
  trireme::SessionOptions options;
  options.training.optimizer = {.name = "sgd", .learning_rate = 0.05};
  options.planning.batch = {.global_batch = 64, .microbatch = 16, .lanes = 2};
  options.planning.stages = world.size() > 1 ? 2 : 1;
  options.planning.replicas = world.size() > 2 ? 2 : 1;
  trireme::Session session(world, make, options);
  double loss = 1;
  while (loss > 0.01 && session.next_step() < 400) {
    session.step();
    if (session.next_step() % 20 != 0) continue;
    loss = session.evaluate().total();  // the same on all ranks
    if (world.rank() == 0) {
      std::printf("%lld steps, loss %.6f\n", static_cast<long long>(session.next_step()), loss);
    }
  }
  session.finish();
  session.save_weights(weights);
}

}  // namespace

/// own_loop [1|2|4] [WEIGHTS]
int main(int argc, char** argv) {
  const int num_ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  if (num_ranks != 1 && num_ranks != 2 && num_ranks != 4) {
    std::fprintf(stderr, "own_loop: 1, 2 or 4 ranks, two lanes\n");
    return 2;
  }
  const std::string weights = argc > 2 ? argv[2] : "weights.safetensors";
  return trireme::run_ranks(argc, argv, num_ranks,
                            [&](trireme::World& world) { train(world, weights); });
}
