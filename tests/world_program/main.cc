// Collectives of trireme::World and a Session in processes that run_ranks starts. It says where all is
// right; a session whose ranks disagree ends its world, and so the program with 2.

#include <ATen/Functions.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "trireme/collectives.h"
#include "trireme/error.h"
#include "trireme/session.h"

namespace {

void expect(bool is_true, const char* what) {
  if (!is_true) throw std::runtime_error(what);
}

void check(trireme::World& world, int num_ranks) {
  expect(world.size() == num_ranks, "size");
  const auto mine = at::full({3}, world.rank() + 1, at::kFloat);
  const double all = num_ranks * (num_ranks + 1) / 2.0;

  at::Tensor sum = mine.clone();
  world.all_reduce(sum);
  expect(at::equal(sum, at::full({3}, all, at::kFloat)), "all_reduce: sum");
  at::Tensor average = mine.clone();
  world.all_reduce(average, trireme::Reduction::kAverage);
  expect(at::allclose(average, sum / num_ranks), "all_reduce: average");
  at::Tensor most = mine.clone();
  world.all_reduce(most, trireme::Reduction::kMax);
  expect(at::equal(most, at::full({3}, num_ranks, at::kFloat)), "all_reduce: max");

  at::Tensor last = mine.clone();
  world.broadcast(last, num_ranks - 1);
  expect(at::equal(last, most), "broadcast");

  const at::Tensor gathered = world.all_gather(mine);
  expect(gathered.sizes() == at::IntArrayRef({num_ranks, 3}), "all_gather: shape");
  for (int rank = 0; rank < num_ranks; ++rank) {
    expect(at::equal(gathered[rank], at::full({3}, rank + 1, at::kFloat)), "all_gather: values");
  }
  try {
    world.all_reduce(at::ones({4, 4}).t());
    expect(false, "a tensor that is not dense was taken");
  } catch (const trireme::Error& error) {
    expect(error.kind() == trireme::ErrorKind::kInvalidArgument, "kind of the refusal");
  }
  world.barrier();
  if (num_ranks > 1) {  // last, since it ends the world's group
    try {
      const auto shape =
          world.rank() == 0 ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{3, 2};
      world.all_gather(at::ones(shape));
      expect(false, "tensors of other shapes were gathered");
    } catch (const trireme::Error& error) {
      expect(error.kind() == trireme::ErrorKind::kCorruptData, "kind of what shapes give");
    }
  }
  if (world.rank() == 0) std::printf("all right\n");
}

/// Two layers, one for each rank.
trireme::Workload make() {
  const auto first = at::randn({4, 8}).set_requires_grad(true);
  const auto second = at::randn({8, 1}).set_requires_grad(true);
  trireme::Model model;
  model.parameters = {{"first", first}, {"second", second}};
  model.forward = [=](const trireme::Batch& batch) -> trireme::Losses {
    const auto y = batch["x"].matmul(first).tanh().matmul(second);
    return {trireme::mean_loss((y - batch["y"]).square().mean())};
  };
  return {std::move(model),
          trireme::tensor_source({{"x", at::randn({16, 4})}, {"y", at::randn({16, 1})}}), nullptr};
}

template <typename Body>
void expect_misuse(const Body& body, const char* what) {
  try {
    body();
  } catch (const trireme::Error& error) {
    expect(error.kind() == trireme::ErrorKind::kInvalidArgument, what);
    return;
  }
  expect(false, what);
}

void say_right(const trireme::World& world) {
  std::printf("rank %d is right\n", world.rank());
  std::fflush(stdout);
}

void check_verification(trireme::World& world) {
  trireme::VerifyOptions options{.num_steps = 2};
  options.planning.batch = {.global_batch = 8, .microbatch = 2, .lanes = 1};
  options.planning.stages = world.size();
  const trireme::Verification result = trireme::verify_training(world, make, options);
  expect(result.passes(), "ranks that do not have the bits of one process");
  expect(result.comparisons.size() == (world.rank() == 0 ? 3U : 1U), "comparisons");
  expect(result.comparisons[0].against == "serial executor", "what ranks are compared with");
  expect(result.plan.num_ranks() == world.size(), "the plan that was verified");
  options.num_steps += world.rank();
  expect_misuse([&] { trireme::verify_training(world, make, options); },
                "ranks that verify other steps");
  say_right(world);
}

void check_session(trireme::World& world, const std::string& folder) {
  trireme::SessionOptions options{.num_steps = 2};
  options.planning.batch = {.global_batch = 8, .microbatch = 2, .lanes = 1};
  options.planning.stages = world.size();
  trireme::SessionOptions kept = options;
  kept.run = {.folder = folder, .checkpoint_every = 1};
  std::string newest;
  {
    trireme::Session session(world, make, kept);
    newest = session.run().checkpoint;
    expect_misuse([&] { session.step(); }, "a step after the end");
    expect(session.weights().size() == (world.rank() == 0 ? 2U : 0U), "weights after a misuse");
  }
  {
    trireme::Session session(world, make, options);
    session.resume(newest);
    expect(session.next_step() == 2, "the step of a checkpoint");
  }
  const std::string older = newest.substr(0, newest.size() - 1) + "1";
  trireme::Session session(world, make, options);
  expect_misuse([&] { session.resume(world.rank() == 0 ? newest : older); },
                "ranks that resume from different checkpoints");
  say_right(world);
}

}  // namespace

/// world_program RANKS [fails | verifies | session FOLDER]
int main(int argc, char** argv) {
  const int num_ranks = std::atoi(argv[1]);
  const std::string what = argc > 2 ? argv[2] : "";
  return trireme::run_ranks(argc, argv, num_ranks, [&](trireme::World& world) {
    if (what == "session") return check_session(world, argv[3]);
    if (what == "verifies") return check_verification(world);
    if (what.empty()) return check(world, num_ranks);
    if (world.rank() == 1) throw std::runtime_error("rank 1 gives up");
    world.barrier();
  });
}
